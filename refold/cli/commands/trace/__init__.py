"""`refold trace`: the commands that read traces, and run nothing."""
