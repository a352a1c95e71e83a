"""Sandboxes for a model's commands: places, walls (barriers) and limits."""
