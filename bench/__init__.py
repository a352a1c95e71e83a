"""The benchmark, `python -m bench`: the engine compared with lower bounds."""
