"""One live run, from its header to its end record.

`runner` supplies the loop with decisions, observations and answers. `live_run` is the host of the run's effects, and
writes each record. `waits` holds the open requests, and knows whether anything but an answer can move the run.
`finish` writes the end record, whatever happened. `resume` and `fork` prepare runs that do not start anew.
"""
