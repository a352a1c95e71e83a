"""`refold mcp …`: serve tools over the Model Context Protocol."""

from pathlib import Path
from typing import Annotated

import typer

from .. import options as o

mcp_app = o.command_group("The Model Context Protocol: serve tools to other programs.")


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
        o.option("Serve over HTTP at /mcp; port 0 takes a free one. By default over stdio.", metavar="HOST:PORT"),
    ] = None,
    name: Annotated[str, typer.Option(help="The server's name.")] = "refold",
    workspace: Annotated[
        Path | None,
        o.option("The folder of file tools and commands; by default the current one.", metavar="DIR"),
    ] = None,
    sandbox: Annotated[
        str | None,
        o.option(
            "What confines commands: auto (by default), bubblewrap, landlock, docker or local (nothing).",
            metavar="NAME",
        ),
    ] = None,
    traceback: o.Traceback = False,
) -> int:
    """Serve tools to MCP clients, over stdio or HTTP.

    Serving ends when the client disconnects (stdio), or on Ctrl-C.
    """
    from .mcp_serve import serve_tools

    return serve_tools(module, http, name, workspace, sandbox)
