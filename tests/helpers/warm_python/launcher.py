"""The process that a command line starts: it has another one do the work, and passes on signals and the end.

Run as `python -I -S launcher.py ADDRESS WORDS…`; it imports only what is built into the interpreter, in some 10 ms.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import fcntl
import marshal
import posix
import sys
import termios

PASSED_ON = (1, 2, 3, 10, 12, 15, 18, 28)
"""SIGHUP, INT, QUIT, USR1, USR2, TERM, CONT and WINCH."""


def pass_on(server: _socket.socket, number: int) -> None:
    """Tell the server of a signal, unless the process that it is for has just ended."""
    try:  # noqa: SIM105 - contextlib takes as long to import as all the rest
        server.send(bytes([number]))
    except OSError:
        pass


def main(address: str, words: list[str]) -> None:
    """Have `words` run, and end as that ends."""
    if posix.getsid(0) == posix.getpid() and posix.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C at this terminal is a signal to this process
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    server.connect(address)
    ignored = [number for number in PASSED_ON if _signal.getsignal(number) == _signal.SIG_IGN]
    mask = posix.umask(0)
    posix.umask(mask)
    asked = marshal.dumps((words, dict(posix.environ), posix.getcwdb(), mask, ignored))
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    _signal.pthread_sigmask(_signal.SIG_BLOCK, PASSED_ON)  # until all is sent, so that no signal gets in between
    for number in PASSED_ON:
        if number not in ignored:
            _signal.signal(number, lambda number, _frame: pass_on(server, number))
    head = len(asked).to_bytes(4, "big")
    server.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    sent = 0
    while sent < len(asked):
        sent += server.send(asked[sent:])
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, PASSED_ON)
    told = b""
    while len(told) < 4:
        told += server.recv(4) or b"\x00\x00\x00\x63"  # a server that is gone: 99
    code = int.from_bytes(told, "big", signed=True)
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL) if -code not in (9, 19) else None
        posix.kill(posix.getpid(), -code)
    posix._exit(code)


main(sys.argv[1], sys.argv[2:])
