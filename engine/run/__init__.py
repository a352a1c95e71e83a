"""One live run.

This is the only room of the engine that awaits hooks, tools and people.

What the run starts from is data (`start`). `drive` carries out that plan. `live_run` is the host of the run's effects,
and writes each record; `runner` supplies the loop with decisions, observations and answers. `waits` holds the open
requests, and knows whether anything but an answer can move the run. `time_limit` ends the work when its time is used
up. `finish` writes the end record, whatever happened.
"""
