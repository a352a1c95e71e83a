"""`refold eval …`: run, compare, replay and report evaluations."""
