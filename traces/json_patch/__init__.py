"""JSON Patch (RFC 6902): documents and the operations between them.

This room knows JSON documents and nothing of traces. `make` finds the patch that leads from one document to another.
`apply` applies a patch in place; `share` applies one and leaves the old document as it was, sharing the unchanged
parts. `longest` finds which items of a list can stay. `changed` finds the changed places between two documents, as
they are shown and counted.
"""
