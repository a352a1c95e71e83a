"""The store in object storage, through obstore (extra `objects`).

The storage must honour conditional writes. `bucket` is the little that the store needs of object storage, with the
probe of these writes. `segments` is a trace as objects, each written once; `run_writer` appends to it. `tasks` is the
table of a set, an object for each task. There is no clock to ask: the store's own is read from the time that it gives
to an object.
"""
