"""`refold set …`: run sets of tasks, and look at them."""
