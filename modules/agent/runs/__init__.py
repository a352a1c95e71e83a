"""The runs of an Agent: one, many, samples and forks of one.

The rooms below know no Agent; this room sees it by a protocol.
"""
