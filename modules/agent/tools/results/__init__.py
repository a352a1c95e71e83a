"""A tool call's execution, its outcome, and the text for models."""
