"""The store in an SQLite database, in WAL mode.

The database of sets beside a folder of files is one, too. `database` opens connections safely: never on a network file
system, and never across a fork.
"""
