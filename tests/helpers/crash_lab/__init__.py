"""The crash laboratory: runs to be killed with SIGKILL, processes to kill them in, and what must hold afterwards.

`*_run` is a run each: a module, its engine, and `settle`, which resumes and answers until the run has ended. Run as a
script, it serves a `ForkServer`. Their tools touch the world by appending a line with the call's idempotency key to
`world.txt` (see `world`), so the file tells how often each call ran, and what came of a call of unknown fate.
`moments` puts files back as they were at a record; `invariants` holds what no kill may change.
"""
