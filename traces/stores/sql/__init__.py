"""The shared part of the stores in databases.

Its statements work in both SQLite and PostgreSQL. `database` is the interface of a connection; `tasks` and `runs` are
the two tables, `tables` their columns.
"""
