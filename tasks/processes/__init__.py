"""Child processes: commands under a supervisor, and work that may never end.

`commands` runs an environment's commands, each under the program `supervisor`, so that nothing outlives its command.
`apart` gives work that cannot be cancelled a process of its own, which can be killed.
"""
