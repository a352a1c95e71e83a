"""The judge: a model that decides about single calls.

The room also makes the text that the judge reads.
"""
