"""One run, from what it starts from to its end record.

`plan` has everything a run starts from: a frozen `RunPlan`, made by one of four constructors; `resume` and `fork`
prepare two of them from traces. `drive` carries out a plan. `live_run` is the host of the run's effects, and writes
each record; `runner` supplies the loop with decisions, observations and answers. `waits` holds the open requests, and
knows whether anything but an answer can move the run. `time_limit` ends the work when its time is used up. `finish`
writes the end record, whatever happened.
"""
