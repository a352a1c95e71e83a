"""Modules to learn from, each read from top to bottom.

`game_of_24` plays a game with a person's hands or a solver's, `game_of_24_search` searches the same game with branches,
and `approval` pays invoices that a person approves.
"""
