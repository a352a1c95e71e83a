"""What the author of a module needs in pytest."""
