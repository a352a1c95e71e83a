"""The `refold` command: run tasks; replay, check, compare and resume traces."""

from .entry import cli, main

__all__ = ["cli", "main"]
