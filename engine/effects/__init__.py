"""Effects: how hooks and tools touch the world, so that a trace has each of them once, with its outcome.

A call is an intent, written before it starts, and an outcome, written when it ended (`call`). What identifies it is
what was asked for: the function's name and the digest of its arguments, the call or hook that made it, and the lane
(task or thread) that asked (`lanes`). `context` finds the running hook or call through one context variable; `perform`
is what users call, `tools` carries out a decision's actions; `journal` finds recorded outcomes by what is asked for.
`budget` has the account that every call draws on.
"""
