"""The index of a folder of traces.

It has the facts of each run, and the place of each step in its trace.

It is a cache in SQLite beside the traces. A *row* says of one trace what its head and its tail say; *positions* are the
byte offsets of a trace's steps, with a few figures of each; *writers* say which step wrote each value of a state. The
index is never trusted over the traces: what it says about a byte is checked when the bytes there are read, and an index
that does not fit is made anew. This room knows the rooms `file`, `json_patch`, `states` and `analysis`.
"""
