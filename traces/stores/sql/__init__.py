"""The shared part of the stores in databases.

Its statements are ones that SQLite and PostgreSQL both understand. `database` is the little that a store needs of a
connection; `tasks` and `runs` are the two tables upon it, `tables` the columns.
"""
