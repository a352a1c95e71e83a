"""`refold replay`: a run's pages, and the command."""
