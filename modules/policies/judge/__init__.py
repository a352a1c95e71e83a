"""The judge: a model that decides about single calls.

This folder also makes the text that the judge reads.
"""
