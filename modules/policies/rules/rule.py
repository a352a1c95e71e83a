"""One rule about tools, as a text.

For example `bash(git push *)`, `write(/etc/**)`, `fetch(domain:example.org)`, `mcp__*`.
"""

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from ...agent.tools.actions import RAW_ARGUMENTS
from ...tools import current_workspace
from ...tools.files.patch_format import PatchFormatError, read_patch
from ...tools.web.addresses import clean_host, clean_url, is_below
from .command_pattern import CommandPattern
from .path_pattern import PathPattern
from .programs.python_code import doubt_of_python
from .shell.command_line import READ_THROUGH, line_of
from .shell.plain_commands import Line
from .shell.variables import is_harmless, steers

CHANGING = frozenset({"write", "edit_file", "multiedit", "insert_lines", "delete_lines", "apply_patch"})
READING = frozenset({"read", "ls", "glob", "grep"})
FETCHING = frozenset({"fetch", "web_extract"})

_COMMANDS = ("cmd", "command")
_CODES = ("code",)
_PATHS = ("file_path", "path", "paths", "directory", "folder", "file", "filename")
_WRITTEN = re.compile(r"\s*(?P<name>[^\s()]+)\s*(?:\((?P<pattern>.*)\))?\s*", re.DOTALL)
_NAMED = re.compile(r"([a-z_][a-z0-9_]*)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """A call as rules see it: the tool's name and the arguments."""

    name: str
    args: Mapping[str, Any]
    trusted: tuple[str, ...] = ()

    @property
    def bare(self) -> str:
        """The name without the tool's namespaces."""
        return self.name.rsplit("__", 1)[-1]

    @property
    def is_readable(self) -> bool:
        """True if the arguments are an object.

        If not, the tool refuses the call.
        """
        return RAW_ARGUMENTS not in self.args

    def of(self, names: tuple[str, ...]) -> Any:
        """Return the call's first argument among these names, or None."""
        return next((self.args[name] for name in names if name in self.args), None)


@dataclass(frozen=True)
class Rule:
    """A rule: a tool's name and a pattern of its arguments.

    The name may have `*` and `?`. A rule without a pattern covers all calls. The meaning of a pattern depends on the
    arguments of the tool:

    - for a command line, it is a command;
    - for `read`, `write` and every other tool that reads or changes files, it is a path;
    - `domain:` names a host, and covers its subdomains, too;
    - `argument=` is a pattern of the text of any argument.

    For other tools, the pattern is compared with the arguments as JSON.
    """

    text: str
    name: str
    pattern: str | None = None
    argument: str | None = None

    @classmethod
    def of(cls, text: str) -> "Rule":
        """Return the rule of a text; raise ValueError for any other text."""
        found = _WRITTEN.fullmatch(text)
        if found is None or (found["pattern"] is not None and not found["pattern"].strip()):
            raise ValueError(f"{text!r} is not a rule; write it as tool, tool(pattern) or tool(argument=pattern)")
        pattern, argument = found["pattern"], None
        if pattern is not None and pattern.strip() in ("*", "**"):
            pattern = None
        if pattern is not None and (named := _NAMED.fullmatch(pattern)) is not None:
            argument, pattern = named[1], named[2]
        return cls(text.strip(), found["name"], pattern, argument)

    def names(self, name: str) -> bool:
        """Return whether the rule covers the tool of this name.

        The rule may name the tool with or without its namespaces.
        """
        bare = name.rsplit("__", 1)[-1]
        return any(fnmatchcase(each.casefold(), self.name.casefold()) for each in (name, bare))

    def concerns(self, call: Call) -> bool:
        """Return whether a rule that denies covers the call's tool.

        It also covers other tools with the same effect.
        """
        if self.names(call.name):
            return True
        if self.pattern is None:
            return False
        low = self.name.casefold()
        if low == "bash":
            return call.bare == "python"
        if low in READING and call.bare == "apply_patch":
            return True  # the call moves a file, which can then be read elsewhere
        return any(low in each and call.bare in each for each in (CHANGING, READING, FETCHING))

    def may_hold(self, call: Call) -> str | None:
        """Return why the rule covers the call, or may cover it.

        If this cannot be determined, the rule may cover the call. Returns None if it surely does not.
        """
        if not self.concerns(call):
            return None
        if self.pattern is None:
            return f"the rule {self.text} holds"
        if not call.is_readable:
            return f"{self.text} may hold, as the arguments cannot be read"
        why = self._may(call, self.pattern)
        return None if why is None else f"{self.text}: {why}"

    def _may(self, call: Call, pattern: str) -> str | None:
        value = call.args.get(self.argument) if self.argument is not None else None
        if self.argument is not None and self.argument not in (*_COMMANDS, *_PATHS):
            return None if value is None else _text(value, pattern)
        if call.bare == "python" and self.name.casefold() == "bash":
            code = call.of(_CODES)
            return doubt_of_python(code) if isinstance(code, str) else "the code is not a text"
        given = call.of(_COMMANDS)
        if pattern.startswith("domain:"):
            domain = pattern.removeprefix("domain:").strip()
            return _host(call.args, domain) if given is None else _text(given, f"*{domain}*")
        if given is not None:
            return self._command(call, given, pattern)
        if call.bare == "apply_patch" or call.of(_PATHS) is not None or call.bare in READING:
            return _path(call, pattern, moved=self.name.casefold() in READING)
        if call.bare == "fetch":
            return _url(call.args.get("url", ""), pattern)
        return _text(dict(call.args), pattern)

    def _command(self, call: Call, given: Any, pattern: str) -> str | None:
        if not isinstance(given, str):
            return "the command is not a text"
        line = _line(call, given)
        wanted = CommandPattern(pattern)
        found = [command for command in line.commands if wanted.may_be(command)]
        if found:
            return f"it runs {str(found[0])!r:.200}"
        doubts = line.all_doubts
        return f"{doubts[0]}, so it is unknown what the command runs" if doubts else None

    def surely_holds(self, call: Call) -> bool:
        """Return whether the rule surely covers the call.

        It must cover every part of a command line.
        """
        return self.covers_tool(call.name) and (self.pattern is None or self._surely(call, self.pattern))

    def covers_tool(self, name: str) -> bool:
        """Return whether the rule covers the tool of exactly this name."""
        return fnmatchcase(name, self.name)

    def _surely(self, call: Call, pattern: str) -> bool:
        if not call.is_readable or call.of(_COMMANDS) is not None:
            return False
        if self.argument is not None and self.argument not in _PATHS:
            value = call.args.get(self.argument)
            return isinstance(value, str) and fnmatchcase(value, pattern)
        if pattern.startswith("domain:"):
            return _are_below(_hosts(call.args), pattern.removeprefix("domain:").strip())
        paths = _paths(call)
        if paths:
            root = str(current_workspace().root)
            return all(PathPattern(pattern, root).is_surely(path) for path in paths)
        return call.bare == "fetch" and fnmatchcase(str(call.args.get("url")), pattern)


def covers_line(rules: list[Rule], call: Call) -> bool:
    """Return whether rules that allow cover a whole command line together.

    Each command of the line must be covered by one of the rules.
    """
    given = call.of(_COMMANDS)
    patterns = [rule.pattern for rule in rules if rule.pattern is not None and rule.covers_tool(call.name)]
    if not isinstance(given, str) or not patterns or not call.is_readable:
        return False
    is_bare = not call.args.get("env") and not call.args.get("input")
    if is_bare and given.strip() in [pattern for pattern in patterns if not re.search(r"[*?\[]", pattern)]:
        return True
    line = _line(call, given)
    wanted = [CommandPattern(pattern) for pattern in patterns]
    real = [each for each in line.commands if each.program.casefold() not in READ_THROUGH]
    if line.doubts or line.cautions or not real:
        return False
    return all(any(each.is_surely(command) for each in wanted) for command in real)


def is_command(call: Call) -> bool:
    """Return whether the call runs a command line."""
    return call.of(_COMMANDS) is not None


def _line(call: Call, given: str) -> Line:
    """Return the commands of the call's command line.

    The effects of the other arguments are included.
    """
    line = line_of(given, is_fed=bool(call.args.get("input")), trusted=call.trusted)
    env = call.args.get("env") or {}
    if not isinstance(env, Mapping):
        return Line(line.commands, ["it sets env to what is not an object", *line.doubts], line.cautions)
    pairs = [(str(name), value if isinstance(value, str) else None) for name, value in env.items()]
    steering = [f"it sets {name}, which may steer what programs do" for name, value in pairs if steers(name, value)]
    unknown = [f"it sets {name}" for name, _ in pairs if not is_harmless(name)]
    return Line(line.commands, [*steering, *line.doubts], [*unknown, *line.cautions])


def _text(value: Any, pattern: str) -> str | None:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str, sort_keys=True)
    whole = pattern if isinstance(value, str) else f"*{pattern.strip('*')}*"
    return f"{text!r:.100} fits" if fnmatchcase(text.casefold(), whole.casefold()) else None


def _paths(call: Call, *, moved: bool = False) -> list[str] | None:
    """Return the paths that a call names, each with its starting folder.

    Returns None if they cannot be determined. For a patch, these are all its paths; with `moved`, those that it moves
    away.
    """
    cwd = call.args.get("cwd")
    if call.bare == "apply_patch":
        try:
            patches = read_patch(str(call.args.get("patch", "")))
        except PatchFormatError:
            return [] if moved else None
        pairs = [(patch.path, None if moved else patch.move_to) for patch in patches if patch.move_to or not moved]
        found: list[Any] = [path for pair in pairs for path in pair if path]
    else:
        given = call.of(_PATHS)
        found = list(given) if isinstance(given, list | tuple) else ["." if given is None else given]
    if call.bare in ("glob", "ls") and (below := call.args.get("pattern")) is not None:
        found += [os.path.join(str(path), str(below)) for path in found]
    if not all(isinstance(path, str) and "\0" not in path for path in (*found, "" if cwd is None else cwd)):
        return None  # no file has a NUL in its path, but code in C reads a path up to it
    return [path if cwd is None or path.startswith(("/", "~")) else f"{cwd}/{path}" for path in found]


def _path(call: Call, pattern: str, *, moved: bool = False) -> str | None:
    paths = _paths(call, moved=moved)
    if paths is None:
        return "the paths cannot be determined"
    wanted = PathPattern(pattern, str(current_workspace().root))
    for path in paths:
        if wanted.may_be(path):
            return f"it is about {path}"
        if call.bare == "grep" and wanted.may_hold(path):
            return f"it would search what is in {path}; search where no such file is"
    return None


def _hosts(args: Mapping[str, Any]) -> list[str | None]:
    """Return the hosts of all URLs among the arguments.

    None stands for a host that cannot be determined.
    """
    given = [
        (name, each)
        for name, value in args.items()
        for each in (value if isinstance(value, list | tuple) and value else [value])
    ]
    return [_host_of(value) for name, value in given if "url" in name.casefold() or _is_url(value)]


def _is_url(value: Any) -> bool:
    return isinstance(value, str) and re.match(r"\s*[A-Za-z][A-Za-z0-9+.-]*:", value) is not None


def _host_of(value: Any) -> str | None:
    if not isinstance(value, str) or re.search(r"[\s\\\x00-\x20]", value):
        return None
    try:
        return clean_host(urlsplit(value).hostname or "")
    except ValueError:
        return None


def _host(args: Mapping[str, Any], domain: str) -> str | None:
    for host in _hosts(args):
        if host is None:
            return "the host cannot be determined"
        if is_below(host, domain, surely=False):
            return f"it is about {host}"
    return None


def _are_below(hosts: list[str | None], domain: str) -> bool:
    return bool(hosts) and all(host is not None and is_below(host, domain, surely=True) for host in hosts)


def _url(value: Any, pattern: str) -> str | None:
    """Return why a URL matches, as written or as fetched, or None."""
    found = _text(value, pattern)
    if found is None and isinstance(value, str):
        with suppress(ValueError):
            found = _text(clean_url(value)[0], pattern)
    return found
