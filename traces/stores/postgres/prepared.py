"""Prepared statements of a connection, executed without psycopg's cursors.

An append is small and frequent: to adapt its values, make a cursor and choose a plan took psycopg longer than the
server needs for the append. Signals can interrupt a wait for the server, as they can psycopg's own waits.
"""

import select
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.pq import ConnStatus, ExecStatus, Format

_GOOD = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
Value = int | float | str | bytes


class PreparedStatements:
    """The statements of one connection.

    They use `$1` for values, with casts where the server cannot infer the type. Values of type bytes are sent in binary
    form, all others as text.
    """

    def __init__(self, connection: psycopg.Connection) -> None:
        self._pgconn: Any = connection.pgconn
        self._names: dict[bytes, bytes] = {}
        self._poll = select.poll()
        self._socket: int = self._pgconn.socket

    def first(self, statement: bytes, values: Sequence[Value]) -> int:
        """Execute a statement and return the number in its first column.

        Raises psycopg's errors.
        """
        name = self._names.get(statement)
        if name is None:
            name = b"refold_%d" % len(self._names)
            self._pgconn.send_prepare(name, statement)
            self._result()
            self._names[statement] = name
        sent = [each if isinstance(each, bytes) else str(each).encode() for each in values]
        formats = [Format.BINARY if isinstance(each, bytes) else Format.TEXT for each in values]
        self._pgconn.send_query_prepared(name, sent, formats)
        value: bytes = self._result().get_value(0, 0)
        return int(value)

    def _flush(self) -> None:
        pgconn = self._pgconn
        while pgconn.flush():
            self._wait(select.POLLIN | select.POLLOUT)
            pgconn.consume_input()  # a server that waits until its answers are read reads nothing itself

    def _result(self) -> Any:
        """Wait for the statement that was sent, and return its result."""
        pgconn = self._pgconn
        self._flush()
        found = None
        while True:
            while pgconn.is_busy():
                self._wait(select.POLLIN)
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                break
            found = result
        if pgconn.status == ConnStatus.BAD or found is None:
            raise psycopg.OperationalError(f"the connection was lost: {pgconn.get_error_message()}")
        if found.status not in _GOOD:
            raise psycopg.errors.error_from_result(found)
        return found

    def _wait(self, events: int) -> None:
        self._poll.register(self._socket, events)
        self._poll.poll()
