"""The `refold` command: runs tasks, steps through traces, checks, compares and resumes them."""

from .entry import cli, main

__all__ = ["cli", "main"]
