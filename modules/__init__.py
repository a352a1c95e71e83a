"""Modules built only on the engine's public names."""
