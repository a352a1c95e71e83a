"""The typed state of a run: frozen models, drafts of them, and the JSON Patch from one to the next.

A state is frozen at every depth, and equals what its JSON form loads to. `model` and `fields` read a class's
annotations as shapes (`containers`, `scalars`, `unions`); a shape freezes a value, in one pass (`freezer`).
`reduce` works on a draft: a complete, changeable view of the state whose parts are drafted as they are reached. When it
returns, `finalize` freezes what was changed, shares the rest with the old state, and writes the patch as it goes;
`commit` puts the three together, and `revoke` makes the drafts unusable. Nothing here reads a clock, opens a file or
awaits.
"""
