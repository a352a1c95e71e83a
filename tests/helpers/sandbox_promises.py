"""The promises of every sandbox, tested on a real one."""

import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import psutil

from refold.modules.tools import Sandbox
from refold.tasks.errors import CommandError, OutsideWorkspaceError

Check = Callable[[Sandbox], Awaitable[str | None]]
_SECONDS_TO_START = (1, 10, 60)
"""Timeouts for a command that prints a line, tried in this order: a container, or a busy machine, may start slowly."""
_LOOKS = 200
"""How often a command looks for its file, a tenth of a second apart, before it continues without the file."""


async def check_sandbox(sandbox: Sandbox) -> list[str]:
    """Return the promises that a sandbox breaks, a line each.

    The check writes a few files into the workspace and removes them.
    """
    problems: list[str] = []
    for check in _CHECKS:
        try:
            problem = await check(sandbox)
        except Exception as raised:
            error = raised
            while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
                error = error.exceptions[0]
            problem = f"{type(error).__name__}: {error}"
        if problem:
            problems.append(f"{check.__name__.strip('_')}: {problem}")
    return problems


async def _runs_commands(sandbox: Sandbox) -> str | None:
    done = await sandbox.exec(["sh", "-c", "echo out; echo err >&2; exit 3"])
    return None if (done.returncode, done.output) == (3, "out\nerr\n") else f"got {done}"


async def _feeds_input(sandbox: Sandbox) -> str | None:
    text = "é" * min(100_000, sandbox.limits.output_bytes // 3)
    done = await sandbox.exec(["cat"], stdin=text)
    empty = await sandbox.exec(["cat"])
    return None if done.output == text and empty.output == "" else "the input is not in the output"


async def _runs_python(sandbox: Sandbox) -> str | None:
    done = await sandbox.exec([*sandbox.python, "-c", "print(6 * 7)"])
    return None if done.output == "42\n" else f"got {done}"


async def _sets_variables(sandbox: Sandbox) -> str | None:
    done = await sandbox.exec(["sh", "-c", "echo $REFOLD_CHECK"], env={"REFOLD_CHECK": "a b"})
    return None if done.output == "a b\n" else f"got {done.output!r}"


async def _shows_no_secret(sandbox: Sandbox) -> str | None:
    secret = secrets.token_hex(16)
    os.environ["REFOLD_CHECK_TOKEN"] = secret
    try:
        done = await sandbox.exec(["sh", "-c", "env; cat /proc/self/environ 2>/dev/null"])
    finally:
        del os.environ["REFOLD_CHECK_TOKEN"]
    return "commands see this process's variables" if secret in done.output else None


async def _shares_files(sandbox: Sandbox) -> str | None:
    async with _file(sandbox, b"one\r\n\xff") as name:
        done = await sandbox.exec(["sh", "-c", f"wc -c < {name}; mkdir -p {name}.d; printf two > {name}.d/f"])
        found = await sandbox.read(f"{name}.d/f")
        await sandbox.exec(["rm", "-r", f"{name}.d"])
    return None if done.output.strip() == "6" and found == b"two" else f"got {done.output!r} and {found!r}"


async def _runs_in_a_folder(sandbox: Sandbox) -> str | None:
    async with _file(sandbox, b"x") as name:
        await sandbox.exec(["mkdir", f"{name}.d"])
        done = await sandbox.exec(["sh", "-c", f"ls ../{name}"], cwd=f"{name}.d")
        await sandbox.exec(["rmdir", f"{name}.d"])
    return None if done.ok else f"got {done}"


async def _stays_inside(sandbox: Sandbox) -> str | None:
    for path in ("../outside", "/etc/hostname", "a/../../outside", "\0"):
        for what in (sandbox.read(path), sandbox.write(path, b""), sandbox.exec(["true"], cwd=path)):
            try:
                await what
            except OutsideWorkspaceError:
                continue
            except OSError:
                if path != "a/../../outside":
                    return f"{path!r} is not refused, although it leads outside"
                continue
            return f"{path!r} leads outside"
    return None


async def _kills_whole(sandbox: Sandbox) -> str | None:
    mark = secrets.token_hex(8)
    script = f"echo begun; (setsid sh -c 'sleep 61; : {mark}' &) ; sleep 62 & sleep 63; : {mark}"
    for seconds in _SECONDS_TO_START:
        done = await sandbox.exec(["sh", "-c", script], timeout=seconds)
        said = [line for line in done.output.splitlines() if line != "Killed"]  # a shell may report its killed children
        if said or not done.timed_out:
            break
    if not done.timed_out or said != ["begun"]:
        return f"the timeout is not reported, or the output is lost: {done}"
    with anyio.move_on_after(0.5):
        await sandbox.exec(["sh", "-c", script])
    left = [each for each in psutil.process_iter(["cmdline"]) if mark in " ".join(each.info["cmdline"] or [])]
    return f"{len(left)} processes are left" if left else None


async def _caps_output(sandbox: Sandbox) -> str | None:
    size = sandbox.limits.output_bytes * 3
    done = await sandbox.exec(["sh", "-c", f"echo first; head -c {size} /dev/zero | tr '\\0' x; echo last"])
    kept = len(done.output) <= sandbox.limits.output_bytes + 100 and done.left_out > 0
    return None if kept and done.output.startswith("first") and done.output.endswith("last\n") else "it is not limited"


async def _streams(sandbox: Sandbox) -> str | None:
    pieces: list[str] = []
    name = f"refold-check-{secrets.token_hex(8)}"
    waits = f"n=0; until [ -e {name} ] || [ $n = {_LOOKS} ]; do sleep 0.1; n=$((n + 1)); done"

    async def answer() -> None:
        """Let the command continue once its first line has come."""
        while not pieces:
            await anyio.sleep(0.01)
        await sandbox.write(name, b"")

    async with anyio.create_task_group() as group:
        group.start_soon(answer)
        await sandbox.exec(["sh", "-c", f"echo one; {waits}; echo two"], on_output=pieces.append)
        group.cancel_scope.cancel()
    await sandbox.exec(["rm", "-f", name])
    return None if pieces == ["one\n", "two\n"] else f"got {pieces}"


async def _tells_what_does_not_start(sandbox: Sandbox) -> str | None:
    try:
        done = await sandbox.exec(["no-such-program-there"])
    except CommandError:
        return None
    return None if not done.ok else "a missing program does not fail"


async def _has_its_walls(sandbox: Sandbox) -> str | None:
    walls = sandbox.walls
    if "files" in walls:
        for path in ("/etc/refold-check", "/usr/refold-check"):
            if (await sandbox.exec(["sh", "-c", f": > {path}"])).ok:
                await sandbox.exec(["rm", "-f", path])
                return f"{path} can be written"
    if "tmp" in walls:
        name = f"/tmp/refold-check-{secrets.token_hex(8)}"
        done = await sandbox.exec(["sh", "-c", f"echo x > {name} && cat {name}"])
        is_outside = os.path.exists(name)
        await sandbox.exec(["rm", "-f", name])
        if done.output != "x\n" or is_outside:
            return "/tmp is not separate"
    if "processes" in walls and (await sandbox.exec(["kill", "-0", str(os.getpid())])).ok:
        return "outside processes can be seen"
    if "network" in walls:
        return await _reaches(sandbox)
    return None


async def _reaches(sandbox: Sandbox) -> str | None:
    """Return a problem if a port of this machine can be reached."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        done = await sandbox.exec([*sandbox.python, "-c", code])
    return "the network can be reached" if done.ok else None


async def _holds_its_limits(sandbox: Sandbox) -> str | None:
    if sandbox.limits.file_bytes:
        async with _file(sandbox, b"") as name:
            size = sandbox.limits.file_bytes * 4
            await sandbox.exec(["sh", "-c", f"head -c {size} /dev/zero > {name}"])
            if len(await sandbox.read(name)) >= size:
                return "files grow past their limit"
    if sandbox.limits.memory_bytes:
        code = f"bytearray({sandbox.limits.memory_bytes * 2})"
        if (await sandbox.exec([*sandbox.python, "-c", code])).ok:
            return "memory grows past its limit"
    return None


@asynccontextmanager
async def _file(sandbox: Sandbox, data: bytes) -> AsyncIterator[str]:
    """Yield a temporary file in the workspace."""
    name = f"refold-check-{secrets.token_hex(8)}"
    await sandbox.write(name, data)
    if await sandbox.read(name) != data:
        raise OSError("the bytes read differ from the bytes written")
    try:
        yield name
    finally:
        await sandbox.exec(["rm", "-f", name])


_CHECKS: tuple[Check, ...] = (
    _runs_commands,
    _feeds_input,
    _runs_python,
    _sets_variables,
    _shows_no_secret,
    _shares_files,
    _runs_in_a_folder,
    _stays_inside,
    _kills_whole,
    _caps_output,
    _streams,
    _tells_what_does_not_start,
    _has_its_walls,
    _holds_its_limits,
)  # fmt: skip
