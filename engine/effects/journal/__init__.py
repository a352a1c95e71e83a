"""Recorded calls, found again by what was requested.

They are delivered in their recorded order.

`journal` looks up the calls of one step by request. `recorded_order` makes a caller wait for its turn, so that replayed
outcomes arrive in the order in which the live ones did. `unmarked` compares recorded values from which secrets were
removed.
"""
