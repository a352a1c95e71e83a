"""From a trace, without the world: the hooks run again, and their effects are served from what was recorded.

`verify` folds a trace again and compares; `recorded_host` stands where a live run would, and serves outcomes in their
recorded order. `reuse` lends the outcomes of one run to a fork of it for as long as the fork asks for the same.
`unknown_effects` lists the calls of which nobody knows whether they happened, for a person to tell.
"""
