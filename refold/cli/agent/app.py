"""`refold agent` and `refold tools`: their options."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .. import options as o
from ..exits import CommandWithCodes
from ..finding import RUNS

STEPS = 50
"""Steps that a run may take where nothing else is said."""

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        envvar="REFOLD_MODEL",
        help="The model: openai/gpt-4o, ollama_chat/qwen3, …, with parameters behind it (,temperature=0.2); "
        "scripted:FILE plays a script of answers.",
        show_default=False,
    ),
]
ApiBase = Annotated[
    str | None,
    typer.Option("--api-base", metavar="URL", help="The server of an openai/NAME model that you run yourself."),
]
AgentModule = Annotated[
    str | None,
    typer.Option("--module", metavar="MODULE:NAME", help="An Agent made in Python, to begin with.", show_default=False),
]
Tools = Annotated[
    list[str] | None,
    typer.Option(
        "--tool",
        "-t",
        metavar="MODULE:NAME",
        help="A tool: a function, a Tool, a Toolset or its class. Repeatable.",
        show_default=False,
    ),
]
Standard = Annotated[
    list[str] | None,
    typer.Option("--tools", metavar="NAMES", help="Standard tools by name: read,write,bash. Repeatable."),
]
AllStandard = Annotated[bool, typer.Option("--default-tools", help="All standard tools.")]
Mcp = Annotated[
    list[str] | None,
    typer.Option(
        "--mcp", metavar="[NAME=]COMMAND|URL", help="An MCP server: what starts it, or its URL. Repeatable.",
        show_default=False,
    ),
]  # fmt: skip
Skills = Annotated[
    list[Path] | None,
    typer.Option("--skill", metavar="DIR", help="A skill, or a folder of skills. Repeatable.", show_default=False),
]
Capabilities = Annotated[
    list[str] | None,
    typer.Option(
        "--capability",
        metavar="DIR|NAME",
        help="A capability: all that its folder has. Repeatable.",
        show_default=False,
    ),
]
AsAgent = Annotated[
    str | None, typer.Option("--as", metavar="NAME", help="Be this agent of a capability.", show_default=False)
]
SubAgents = Annotated[bool, typer.Option("--subagents", help="Let it hand tasks to agents like itself.")]
Policy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME[:K=V,...]",
        help="What stands over its calls: headless, guard:judge_model=..., …",
        show_default=False,
    ),
]
Sandbox = Annotated[
    str | None, typer.Option("--sandbox", metavar="NAME", help="Where commands run: local, bubblewrap or docker.")
]
AgentWorkspace = Annotated[
    Path | None,
    typer.Option("--workspace", metavar="DIR", help="The folder of files and commands; else the current one."),
]
Mode = Annotated[
    Literal["auto", "api", "xml", "json", "json-in-xml", "json-with-tag", "pythonic"] | None,
    typer.Option("--tool-mode", help="How the model is told of tools.", show_default=False),
]


def agent(
    goal: Annotated[
        str | None, typer.Argument(help="What it is to do. Without it a chat begins.", show_default=False)
    ] = None,
    model: Model = None,
    tool: Tools = None,
    tools: Standard = None,
    default_tools: AllStandard = False,
    mcp: Mcp = None,
    skill: Skills = None,
    capability: Capabilities = None,
    as_agent: AsAgent = None,
    policy: Policy = None,
    subagents: SubAgents = False,
    module: AgentModule = None,
    instructions: Annotated[
        str | None,
        typer.Option("--instructions", "-i", metavar="TEXT|@FILE", help="What the system's message says."),
    ] = None,
    workspace: AgentWorkspace = None,
    sandbox: Sandbox = None,
    tool_mode: Mode = None,
    api_base: ApiBase = None,
    name: Annotated[str | None, typer.Option(help="What the agent is called.", show_default=False)] = None,
    max_steps: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"Steps that a run may take: {STEPS}, or what the module's Agent says.", show_default=False
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--budget-tokens", "--max-tokens", min=1, help="Tokens that a run may use, in and out.", show_default=False
        ),
    ] = None,
    max_cost: o.MaxCost = None,
    max_seconds: o.MaxSeconds = None,
    traces: o.Traces = RUNS,
    continued: Annotated[
        str | None,
        typer.Option(
            "--continue", metavar="TRACE|FILE", help="Go on with the conversation of a run, or of a saved one."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of all randomness; else one is drawn.", show_default=False)] = None,
    durability: o.Durability = "process",
    quiet: o.Quiet = False,
    json: o.Json = False,
    traceback: o.Traceback = False,
) -> int:
    """Give an Agent a goal, or without one chat with it; what it says and does is shown as it comes.

    Every run leaves a trace that can be replayed, verified, resumed and forked with no further options.
    """
    from ..inputs import read_text_or_file
    from ..running import Manner
    from .chat import chat
    from .continuing import conversation
    from .goal import Limits, run_goal
    from .making import make

    config = _config(locals(), text=read_text_or_file(instructions, "--instructions"))
    made = make(config)
    if module is None and max_steps is None:
        max_steps = STEPS
    limits = Limits(traces, o.budget_of(max_steps, max_seconds, max_tokens, max_cost), seed, durability)
    before = conversation(continued, traces) if continued is not None else None
    manner = Manner(quiet, json, traceback)
    if goal is None:
        return chat(made, limits, manner, before)
    return run_goal(made, goal, limits, manner, before)


def tools(
    tool: Tools = None,
    tools: Standard = None,
    default_tools: AllStandard = False,
    mcp: Mcp = None,
    skill: Skills = None,
    capability: Capabilities = None,
    as_agent: AsAgent = None,
    policy: Policy = None,
    subagents: SubAgents = False,
    module: AgentModule = None,
    workspace: AgentWorkspace = None,
    sandbox: Sandbox = None,
    json: o.Json = False,
    traceback: o.Traceback = False,
) -> int:
    """List the tools that an agent with these options would see: the names that its model knows, and what they take."""
    from .listing import list_tools
    from .making import make

    return list_tools(make(_config(locals()), toolbox=True), json)


def add_to(app: typer.Typer) -> None:
    """Makes the commands known."""
    app.command(cls=CommandWithCodes)(agent)
    app.command()(tools)


def _config(given: dict[str, Any], text: str | None = None) -> Any:
    """The config of a command's options."""
    from ..failures import InputError
    from .config import AgentConfig
    from .tools import standard_names

    names = [name.strip() for each in given["tools"] or () for name in each.split(",") if name.strip()]
    if given["default_tools"]:
        if names:
            raise InputError(
                "--default-tools has all standard tools; leave out --tools, or name those you want with it"
            )
        names = [*standard_names()]
    plain: dict[str, Any] = {
        key: given.get(key)
        for key in ("module", "model", "api_base", "name", "tool_mode", "sandbox", "as_agent", "policy", "subagents")
    }
    return AgentConfig(
        **plain,
        instructions=text,
        tools=tuple(given["tool"] or ()),
        standard=tuple(names),
        mcp=tuple(given["mcp"] or ()),
        skills=tuple(str(each) for each in given["skill"] or ()),
        capabilities=tuple(given["capability"] or ()),
        workspace=str(given["workspace"] or "."),
    )
