"""The typed state of a run: frozen models, their drafts, and patches.

A state is frozen at every depth, and its JSON form loads to an equal state. `model` and `fields` read a class's
annotations as shapes (`containers`, `scalars`, `unions`). A shape freezes a value, in one pass (`freezer`).

`reduce` works on a draft: a complete, changeable view of the state whose parts become drafts when `reduce` reaches
them. When `reduce` returns, `finalize` freezes the changed parts, shares all others with the old state, and writes the
patch on the way. `commit` runs one `reduce` from draft to commit, and `revoke` makes its drafts unusable.

Nothing in this package reads a clock, opens a file or awaits.
"""
