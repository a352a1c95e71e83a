"""`refold replay`: a run's pages, the keys that turn them, the command."""
