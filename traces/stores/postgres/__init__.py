"""The store in a PostgreSQL database, through psycopg 3 (extra `postgres`).

`database` holds the connections and survives their loss; `durability` decides which commits wait for the disk.
"""
