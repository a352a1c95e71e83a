"""Things built on the public names of the engine alone."""
