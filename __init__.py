"""The root of the refold checkout; the packages are the folders beside this file."""
