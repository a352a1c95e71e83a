"""Cassettes: a model's answers, recorded in a file and played back."""
