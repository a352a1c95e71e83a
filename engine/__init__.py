"""refold.engine."""
