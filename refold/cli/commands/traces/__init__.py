"""`refold traces …`: commands for whole stores of traces."""
