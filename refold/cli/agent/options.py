"""The options of `refold agent` and `refold tools`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

STEPS = 50
"""The default limit of a run's steps."""
_AGENT = "The agent"
_TOOLS = "Tools and workspace"
_LIMITS = "Limits"

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        envvar="REFOLD_MODEL",
        help="The model, such as openai/gpt-4o or ollama_chat/qwen3, and its parameters (,temperature=0.2); "
        "scripted:FILE plays a script of answers.",
        show_default=False,
        rich_help_panel=_AGENT,
    ),
]
ApiBase = Annotated[
    str | None,
    typer.Option(
        "--api-base",
        metavar="URL",
        help="The server of an openai/NAME model that you run yourself.",
        rich_help_panel=_AGENT,
    ),
]
AgentModule = Annotated[
    str | None,
    typer.Option(
        "--module",
        metavar="MODULE:NAME",
        help="An Agent made in Python, which the other options extend.",
        show_default=False,
        rich_help_panel=_AGENT,
    ),
]
Tools = Annotated[
    list[str] | None,
    typer.Option(
        "--tool",
        "-t",
        metavar="MODULE:NAME",
        help="A tool: a function, a Tool, a Toolset or its class. Repeatable.",
        show_default=False,
        rich_help_panel=_TOOLS,
    ),
]
Standard = Annotated[
    list[str] | None,
    typer.Option(
        "--tools", metavar="NAMES", help="Standard tools by name: read,write,bash. Repeatable.", rich_help_panel=_TOOLS
    ),
]
AllStandard = Annotated[bool, typer.Option("--default-tools", help="All standard tools.", rich_help_panel=_TOOLS)]
Mcp = Annotated[
    list[str] | None,
    typer.Option(
        "--mcp", metavar="[NAME=]COMMAND|URL", help="An MCP server: its command, or its URL. Repeatable.",
        show_default=False, rich_help_panel=_TOOLS),
]  # fmt: skip
Skills = Annotated[
    list[Path] | None,
    typer.Option(
        "--skill",
        metavar="DIR",
        help="A skill, or a folder of skills. Repeatable.",
        show_default=False,
        rich_help_panel=_TOOLS,
    ),
]
Capabilities = Annotated[
    list[str] | None,
    typer.Option(
        "--capability",
        metavar="DIR|NAME",
        help="A capability, with everything in its folder. Repeatable.",
        show_default=False,
        rich_help_panel=_TOOLS,
    ),
]
AsAgent = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="NAME", help="Run as this agent of a capability.", show_default=False, rich_help_panel=_AGENT
    ),
]
SubAgents = Annotated[
    bool, typer.Option("--subagents", help="Let it hand tasks to agents like itself.", rich_help_panel=_TOOLS)
]
Policy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME[:K=V,...]",
        help="The policy that decides on its calls: headless, guard:judge_model=..., …",
        show_default=False,
        rich_help_panel=_TOOLS,
    ),
]
Sandbox = Annotated[
    str | None,
    typer.Option(
        "--sandbox",
        metavar="NAME",
        help="What confines commands: auto (by default), bubblewrap, landlock, docker or local (nothing).",
        rich_help_panel=_TOOLS,
    ),
]
AgentWorkspace = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        help="The folder of file tools and commands; by default the current one.",
        rich_help_panel=_TOOLS,
    ),
]
Mode = Annotated[
    Literal["auto", "api", "xml", "json", "json-in-xml", "json-with-tag", "pythonic"] | None,
    typer.Option(
        "--tool-mode", help="How the model is offered tools and calls them.", show_default=False, rich_help_panel=_AGENT
    ),
]
Name = Annotated[str | None, typer.Option(help="The agent's name.", show_default=False, rich_help_panel=_AGENT)]
Instructions = Annotated[
    str | None,
    typer.Option(
        "--instructions",
        "-i",
        metavar="TEXT|@FILE",
        help="The text of the system message.",
        show_default=False,
        rich_help_panel=_AGENT,
    ),
]
Retries = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="How often a turn repeats a request to the model, after errors that may pass.",
        show_default=False,
        rich_help_panel=_LIMITS,
    ),
]
MaxSteps = Annotated[
    int | None,
    typer.Option(
        min=1,
        help=f"Steps that a run may take; by default {STEPS}, or the limit of --module's Agent.",
        show_default=False,
        rich_help_panel=_LIMITS,
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--budget-tokens",
        "--max-tokens",
        min=1,
        help="Tokens that a run may use, in and out.",
        show_default=False,
        rich_help_panel=_LIMITS,
    ),
]
MaxCost = Annotated[
    float | None, typer.Option(help="US dollars that a run may spend.", show_default=False, rich_help_panel=_LIMITS)
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        help="Seconds that a run may work; waiting does not count.", show_default=False, rich_help_panel=_LIMITS
    ),
]
Continued = Annotated[
    str | None,
    typer.Option(
        "--continue",
        metavar="TRACE",
        show_default=False,
        help="Continue the conversation of a run.",
    ),
]
