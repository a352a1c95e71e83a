"""`refold replay`: the pages of a run, the keys that turn them, and the command that shows or prints them."""
