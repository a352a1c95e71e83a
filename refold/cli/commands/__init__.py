"""The commands, one file each: they read their input, call the library, and hand what comes to `render`."""
