"""The states of a run: a snapshot, and the patches after it.

`fold` makes one state, straight from the bytes. `history` serves readers that walk from state to state. `bases` finds
the state at which a child run starts in the trace of its parent. States are plain documents: no user code is imported.
"""
