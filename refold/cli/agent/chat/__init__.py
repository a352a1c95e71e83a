"""`refold agent` without a goal: a conversation at the terminal."""
