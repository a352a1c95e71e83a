"""What an Agent of the command line is made of: kept in the trace of each run, so that the Agent can be made again."""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from ...modules.agent.events.masking import MASK, is_secret, masked
from ..errors import InputError

KEY = "agent"
"""The member of a task's metadata that holds it."""
_NAME = re.compile(r"(?<![\w-])([A-Za-z_]\w*)=")
_VALUE = re.compile(r"\"[^\"]*\"|'[^']*'|(?:\\.|[^\s&\\])+")
_SCHEME = re.compile(r"\b(bearer|basic)((?:\\?\s|%20|\+)+)([^\s\"'&]+)", re.IGNORECASE)
_LOGIN = re.compile(r"://[^/\s@]+@")
_MARK = re.compile("<redacted:([^>]+)>")
_SECRET = re.compile(r"[,\s]\s*(?:[\w.-]*[._])?api_key=(?:\"[^\"]*\"|'[^']*'|[^,\s]*)")


@dataclass(frozen=True)
class AgentConfig:
    """The options of `refold agent` that say what the Agent is; those of a run (limits, seed) are in its header.

    Paths are as they were typed; `folder` is where they start.

    Attributes:
        module: MODULE:NAME of an Agent made in Python, in the place of all that says what an Agent is.
        model: an identifier, without keys; None where `module` has its own.
        api_base: the URL of a local server.
        name: what the agent is called.
        instructions: the text of its system message.
        tool_mode: how the model is told of tools; None for what is the Agent's own.
        tools: MODULE:NAME each.
        standard: names of standard tools.
        mcp: commands and URLs of MCP servers.
        skills: folders of skills.
        capabilities: folders of capabilities, or their names.
        as_agent: the agent of a capability that it is to be.
        policy: a policy and its settings, as a text.
        subagents: whether it can hand tasks to agents like itself.
        sandbox: where commands run.
        workspace: the folder of file tools and commands; "." where none was named.
        folder: the current folder of the command.
    """

    module: str | None = None
    model: str | None = None
    api_base: str | None = None
    name: str | None = None
    instructions: str | None = None
    tool_mode: str | None = None
    tools: tuple[str, ...] = ()
    standard: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    as_agent: str | None = None
    policy: str | None = None
    subagents: bool = False
    sandbox: str | None = None
    workspace: str = "."
    folder: str = field(default_factory=lambda: str(Path.cwd()))

    def path(self, given: str | Path) -> Path:
        """A path as it was meant: relative ones start in `folder`."""
        return Path(self.folder, given)

    @property
    def is_elsewhere(self) -> bool:
        """Whether this process has another current folder than the command had."""
        return Path(self.folder) != Path.cwd()

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: what was given, and no key."""
        doc = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        for name in ("model", "api_base", "policy"):
            if doc[name] is not None:
                doc[name] = _LOGIN.sub("://", without_keys(str(doc[name])))
        doc["mcp"] = [without_secrets(each) for each in self.mcp]
        return {name: value for name, value in doc.items() if value not in (None, [], False)}

    @classmethod
    def from_dict(cls, doc: Mapping[str, Any], why: str = "") -> Self:
        """The config of a JSON form; secrets that were in commands come from the environment again.

        Raises InputError for what was written by a newer refold.
        """
        known = {each.name for each in fields(cls)}
        if unknown := doc.keys() - known:
            raise InputError(f"the agent's {', '.join(sorted(unknown))}{why} is not known to this version of refold")
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in doc.items()
        }
        plain = asdict(cls(folder=""))
        for name, value in given.items():
            texts = value if isinstance(value, tuple) and isinstance(plain[name], tuple) else (value,)
            flag = isinstance(plain[name], bool)
            if not all(isinstance(each, bool if flag else str) for each in texts) or (
                isinstance(plain[name], tuple) and not isinstance(value, tuple)
            ):
                raise InputError(f"the agent's {name}{why} is not what refold writes there: {value!r:.80}")
        given["mcp"] = tuple(_MARK.sub(_from_environment, each) for each in given.get("mcp", ()))
        return cls(**given)

    def over(self, **given: Any) -> Self:
        """The config with what is given, and is not None, in the place of its own."""
        return replace(self, **{name: value for name, value in given.items() if value is not None})


def without_secrets(command: str) -> str:
    """A server's command or URL without what its names say is secret: values of `TOKEN=…`, `--api-key …`, `user:…@`.

    For a value with a name a mark stands, so that it can be taken from the environment again.
    """
    for named in reversed(list(_NAME.finditer(command))):
        value = _VALUE.match(command, named.end())
        if value is not None and (is_secret(named[1]) or _SCHEME.search(value[0])):
            command = f"{command[: named.end()]}<redacted:{named[1]}>{command[value.end() :]}"
    return str(masked(_SCHEME.sub(rf"\1\2{MASK}", _LOGIN.sub("://", command))))


def _from_environment(mark: re.Match[str]) -> str:
    """The secret that a mark stands for, where this process has it too."""
    return os.environ.get(mark[1], mark[0])


def without_keys(text: str) -> str:
    """The identifier of a model, or the text of a policy, without the keys in it."""
    return _SECRET.sub("", text)
