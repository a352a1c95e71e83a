"""Tasks that run alone, because a process that ran them has died.

`own_process` starts such a process for a worker and says how it ended; `main` is what runs in it.
"""
