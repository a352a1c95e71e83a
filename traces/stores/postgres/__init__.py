"""The store in a PostgreSQL database, through psycopg 3 (extra `postgres`).

`database` holds the connections, survives their loss, and decides which commits wait for the disk.
"""
