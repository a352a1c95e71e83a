"""The benchmark: how close the engine comes to the least that could be done. Run it with `python -m bench`."""
