"""The stores in SQLite and PostgreSQL, which differ in their connection.

The statements of `store`, `run_writer`, `runs` and `tasks` work in both. `database` is the interface of a connection,
which `sqlite` and `postgres` implement; `tables` has the columns, and `sqlite_file` checks a file before it is used.
"""
