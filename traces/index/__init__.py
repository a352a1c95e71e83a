"""The index of a folder of traces, in SQLite beside the traces.

The index is a cache. A *row* holds the facts of one trace from its head and tail. *Positions* are the byte offsets of a
trace's steps, with a few figures of each step. *Writers* name the step that wrote each value of a state. A trace always
overrides the index: what the index says of a byte is checked when the byte is read, and an index that does not fit is
made anew. This room uses the rooms `file`, `json_patch`, `states` and `analysis`.
"""
