"""A trace as bytes: lines with a chain of hashes, in a locked file or in memory, with large values beside it.

`record` is one line, `schema` what a line of each kind has; `writer` appends, `store` is where the bytes go, `lines`
and `tail` read them back, `check` and `repair` say what is wrong with a file and save what can be saved.
"""
