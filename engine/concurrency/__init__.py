"""Helpers around event loops, threads, signals and processes, for asyncio and trio alike.

They know nothing of runs.

threads         run sync code in threads that a deadline can abandon
processes       kill the processes for which abandoned code waits
cancellation    tell the cancellation of a run from that of a task inside it
jobs            one piece of work in a task of its own
several         many pieces of work, up to a limit at a time
scheduler       call a function soon, or later, in an event loop
signals         run async work from sync code, with Ctrl-C and SIGTERM as cancellation
forks           end a process that user code has forked where its function ends
"""
