"""`refold trace`: the commands that only read traces."""
