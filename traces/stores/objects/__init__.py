"""The store in object storage, through obstore (extra `objects`).

The storage must honour conditional writes. `bucket` is the interface to object storage, with a probe of these writes.
`segments` is a trace as objects, each written once; `run_writer` appends to it. `tasks` is the table of a set, an
object for each task. The store's clock is the time that the server gives to a new object.
"""
