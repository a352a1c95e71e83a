"""What a model's command needs beyond its sandbox, and who allows that."""

from collections.abc import Mapping
from typing import Any

from ...engine import call_info, in_run, perform_as
from ...errors import NoRunError
from ..agent.chat.tool_calls import ToolCall
from ..agent.tools import ContextFact, call_text, current_tool_call
from .human import is_approved
from .sandbox import LocalSandbox, Sandbox, UnconfinedSandbox, current_sandbox

LEAVING = ("network", "outside")
"""The arguments with which a command leaves its sandbox."""


async def sandbox_for(tool: str, args: Mapping[str, Any]) -> Sandbox:
    """Return the sandbox for a command: the current one, or with what the arguments `network` and `outside` add.

    A model's command that needs more than its sandbox runs only if a rule of the policy allows it, or a user. Code that
    calls a tool itself decides itself.

    Raises PermissionError if the command is not allowed.
    """
    call = current_tool_call.get()
    is_by_model = in_run() if call is None else call.name.rpartition("__")[2] == tool
    sandbox = current_sandbox("auto" if is_by_model else "local")
    if is_by_model:
        used = await perform_as("sandbox", {}, _name_of(sandbox), idempotent=True)
        missing = what_leaves(sandbox, args)
        if not missing and used == UnconfinedSandbox.name:
            missing = "it was started where no sandbox is available"
        if missing and not _is_allowed(call):
            shown = ToolCall.of(_id_of(call), tool if call is None else call.name, dict(args))
            if not await is_approved(shown, missing):
                raise PermissionError(f"The call was not allowed: {missing}.")
    if args.get("outside") and sandbox.walls:
        return LocalSandbox(getattr(sandbox, "workspace"), sandbox.limits)  # noqa: B009 - not in the protocol
    if args.get("network") and "network" in sandbox.walls:
        if not hasattr(sandbox, "with_network"):
            raise ValueError(f"The sandbox {sandbox.name!r} cannot give a command a network. Leave network out.")
        confined: Sandbox = sandbox.with_network()
        return confined
    return sandbox


def what_leaves(sandbox: Sandbox, args: Mapping[str, Any], answered: tuple[str, ...] = ()) -> str | None:
    """Return what a command needs beyond a sandbox, as a reason to ask; None if it needs nothing.

    `answered` are the arguments that rules allow. A sandbox that the user chose for having no walls is not left.
    """
    if isinstance(sandbox, UnconfinedSandbox):
        found = [f"no sandbox confines it ({sandbox.why})"] if "outside" not in answered else []
    else:
        found = [
            text
            for name, text in (("network", "it needs the network"), ("outside", "it runs outside of the sandbox"))
            if args.get(name) not in (None, False) and name not in answered and _confines(sandbox, name)
        ]
    if not found:
        return None
    why = args.get("why")
    return " and ".join(found) + (f"; its reason: {why}" if why else "")


def _confines(sandbox: Sandbox, name: str) -> bool:
    return "network" in sandbox.walls if name == "network" else bool(sandbox.walls)


def _is_allowed(call: ToolCall | None) -> bool:
    """Return whether a rule, or a user whom a rule asks, has allowed the call."""
    decision = {} if call is None else ContextFact("decisions", default={}).resolve().get(call_text(call), {})
    return decision.get("kind") == "allow" and decision.get("source") == "rules"


def _name_of(sandbox: Sandbox) -> Any:
    async def name() -> str:
        return sandbox.name

    return name


def _id_of(call: ToolCall | None) -> str:
    if call is not None:
        return call.id
    try:
        return call_info().key
    except NoRunError:
        return "command"
