"""The rendering of results.

Results are plain lines in a pipe, and tables, panels and progress at a terminal.
"""
