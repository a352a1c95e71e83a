"""One rule about tools, as a text.

For example `bash(git push *)`, `write(/etc/**)`, `fetch(domain:example.org)`, `mcp__*`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from ...tools import current_workspace
from ...tools.web.addresses import clean_host, is_below
from .call import CHANGING, CODES, COMMANDS, FETCHING, PATHS, READING, Call, plain_name, url_forms
from .command_pattern import CommandPattern
from .path_pattern import PathPattern
from .programs.python_code import doubt_of_python
from .shell.command_line import READ_THROUGH, line_of
from .shell.plain_commands import Line
from .shell.variables import is_harmless, steers

_WRITTEN = re.compile(r"\s*(?P<name>[^\s()]+)\s*(?:\((?P<pattern>.*)\))?\s*", re.DOTALL)
_NAMED = re.compile(r"(?![A-Z0-9_]+=)([A-Za-z_][A-Za-z0-9_-]*)=(.*)", re.DOTALL)
"""An argument and its pattern. `CI=1 make` is a command: a name in capitals is a variable's."""


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
        if self.argument is not None and plain_name(self.argument) not in COMMANDS | PATHS:
            value = call.args.get(self.argument)
            return None if value is None else _text(value, pattern)
        if call.bare == "python" and self.name.casefold() == "bash":
            codes = call.of(CODES)
            found = [doubt_of_python(each) if isinstance(each, str) else "the code is not a text" for each in codes]
            return _first(found) if codes else "the code is not a text"
        if pattern.startswith("domain:"):
            domain = pattern.removeprefix("domain:").strip()
            return _first([*(_text(each, f"*{domain}*") for each in call.commands), _host(call, domain)])
        found = [self._command(call, each, pattern) for each in call.commands]
        if not found and call.bare in FETCHING:
            found = [_url(each, pattern) for each in call.urls]
        if found and (call.is_own or not call.named_paths):  # another's tool may take a path beside a command or URL
            return _first(found)
        if call.bare == "apply_patch" or call.named_paths or call.bare in READING:
            found.append(_path(call, pattern, moved=self.name.casefold() in READING))
            if call.is_own or call.named_paths:
                return _first(found)
        return _first([*found, _text(dict(call.args), pattern)])

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
        if not call.is_readable or call.commands:
            return False
        if self.argument is not None and plain_name(self.argument) not in PATHS:
            value = call.args.get(self.argument)
            return isinstance(value, str) and fnmatchcase(value, pattern)
        if pattern.startswith("domain:"):
            return _are_below(call.urls, pattern.removeprefix("domain:").strip())
        if call.named_paths or call.is_own:
            paths = call.paths()
            if paths:
                root = str(current_workspace().root)
                return all(PathPattern(pattern, root).is_surely(path) for path in paths)
        return call.bare == "fetch" and bool(call.urls) and all(_is_surely_url(each, pattern) for each in call.urls)


def covers_line(rules: list[Rule], call: Call) -> bool:
    """Return whether rules that allow cover a whole command line together.

    Each command of the line must be covered by one of the rules.
    """
    given = call.commands[0] if len(call.commands) == 1 else None
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
    return bool(call.commands)


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


def _path(call: Call, pattern: str, *, moved: bool = False) -> str | None:
    paths = call.paths(moved=moved)
    if paths is None:
        return "the paths cannot be determined"
    wanted = PathPattern(pattern, str(current_workspace().root))
    for path in paths:
        if wanted.may_be(path):
            return f"it is about {path}"
        if call.bare == "grep" and wanted.may_hold(path):
            return f"it would search what is in {path}; search where no such file is"
    return None


def _host_of(value: Any) -> str | None:
    if not isinstance(value, str) or re.search(r"[\s\\\x00-\x20]", value):
        return None
    try:
        return clean_host(urlsplit(value).hostname or "")
    except ValueError:
        return None


def _host(call: Call, domain: str) -> str | None:
    for value in call.urls:
        host = _host_of(value)
        if host is None:
            return "the host cannot be determined"
        if is_below(host, domain, surely=False):
            return f"it is about {host}"
    for word in () if call.is_own or call.commands else call.words:  # the tool may take a host without a scheme
        host = _host_of(f"//{word.lstrip('/')}")
        if host is not None and is_below(host, domain, surely=False):
            return f"it is about {host}"
    return None


def _are_below(urls: Sequence[Any], domain: str) -> bool:
    hosts = [_host_of(each) for each in urls]
    return bool(hosts) and all(host is not None and is_below(host, domain, surely=True) for host in hosts)


def _url(value: Any, pattern: str) -> str | None:
    """Return why a URL matches in one of its forms, or None."""
    return _first(_text(each, pattern) for each in (url_forms(value) if isinstance(value, str) else [value]))


def _is_surely_url(value: Any, pattern: str) -> bool:
    return isinstance(value, str) and all(fnmatchcase(each, pattern) for each in url_forms(value))


def _first(reasons: Iterable[str | None]) -> str | None:
    return next((each for each in reasons if each is not None), None)
