"""The refold command."""
