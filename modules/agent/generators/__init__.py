"""Models that answer: litellm for real ones; scripts, functions and cassettes for tests and demos."""
