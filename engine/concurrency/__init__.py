"""What the engine needs of event loops, threads, signals and processes; it knows nothing of runs.

Both asyncio and trio are driven. `threads` runs sync code where a deadline can leave it behind, `cancellation` tells a
cancelled run from a task that something else has cancelled, `processes` ends what such code waits for.
"""
