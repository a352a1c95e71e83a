"""The commands, one file each.

A command reads its input, calls the library, and hands the result to `render`.
"""
