"""`refold agent` and `refold tools`.

An Agent is built from options, or rebuilt from the trace of an earlier run.
"""
