"""Modules to learn from, each read from top to bottom.

Read `game_of_24` first, which solves a puzzle in steps and takes moves back. `game_of_24_search` solves the same puzzle
with branches, and `approval` pays invoices after a person has approved them.
"""
