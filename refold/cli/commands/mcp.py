"""`refold mcp …`: serve tools over the Model Context Protocol."""

from pathlib import Path
from typing import Annotated

import typer

from .. import options as o

mcp_app = typer.Typer(help="The Model Context Protocol: serve tools to other programs.")


@mcp_app.callback(invoke_without_command=True)
def _help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@mcp_app.command()
def serve(
    module: Annotated[
        str,
        typer.Argument(
            metavar="MODULE[:NAME]|DIR",
            help="What to serve: all tools of a Python module, one of its tools or toolsets, or a capability's folder.",
        ),
    ],
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Serve over HTTP at /mcp; port 0 takes a free one. By default over stdio."
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="The server's name.")] = "refold",
    workspace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder of file tools and commands; by default the current one."),
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What confines commands: auto (by default), bubblewrap, landlock, docker or local (nothing).",
        ),
    ] = None,
    traceback: o.Traceback = False,
) -> int:
    """Serve tools to MCP clients, over stdio or HTTP.

    Serving ends when the client disconnects (stdio), or on Ctrl-C.
    """
    from .mcp_serve import serve_tools

    return serve_tools(module, http, name, workspace, sandbox)
