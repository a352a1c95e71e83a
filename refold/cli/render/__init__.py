"""How results are shown.

Plain lines in a pipe; tables, panels and progress at a terminal.
"""
