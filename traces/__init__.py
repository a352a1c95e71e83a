"""refold.traces."""
