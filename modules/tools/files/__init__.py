"""The tools that read, find and change files inside a workspace."""
