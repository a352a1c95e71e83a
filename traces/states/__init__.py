"""The states of a run: a snapshot, and the patches after it.

`fold` makes one state from the bytes. `history` serves readers that walk from state to state. `bases` finds the state
at which a child run starts, in its parent's trace. States are plain documents: no user code is imported.
"""
