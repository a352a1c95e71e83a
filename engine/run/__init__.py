"""One live run, from its header to its end record: the only room that awaits.

`runner` supplies the loop with decisions, observations and answers; `live_run` is the host of its effects, and writes
each record; `waits` holds the open questions, and knows whether anything but an answer can go on; `finish` writes the
end, whatever happened. `resume` and `fork` say what a run starts from that is not new.
"""
