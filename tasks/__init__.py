"""refold.tasks."""
