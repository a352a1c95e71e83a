"""Servers that others wrote, from PyPI, in an environment of their own, spoken to over stdio."""

import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from refold.modules.agent.calls import ToolCall
from refold.modules.mcp import MCPClient, mcp

PACKAGES = ["mcp-server-time", "mcp-server-git"]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the servers' commands; these need a version of `mcp` of their own, and so an environment."""
    folder = tmp_path_factory.mktemp("servers")
    venv.create(folder, with_pip=True)
    commands = folder / ("Scripts" if sys.platform == "win32" else "bin")
    install = [str(commands / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES]
    try:
        done = subprocess.run(install, capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired:
        pytest.skip("the package registry did not give mcp-server-time and mcp-server-git within 90 s")
    if done.returncode:
        pytest.skip(f"mcp-server-time and mcp-server-git could not be installed: {done.stderr.strip()[-300:]}")
    return commands


async def call(client: MCPClient, name: str, **arguments: Any) -> Any:
    tool = next(tool for tool in client.tools if tool.name == name)
    message, _ = await tool.handle_tool_call(ToolCall.of("c1", name, arguments))
    return message


async def test_the_time_server_tells_the_time(installed: Path) -> None:
    async with mcp("stdio", command=str(installed / "mcp-server-time"), args=["--local-timezone", "UTC"]) as client:
        assert {tool.name for tool in client.tools} == {"get_current_time", "convert_time"}
        message = await call(client, "get_current_time", timezone="Europe/Berlin")
        assert "Europe/Berlin" in message.content
        message = await call(client, "get_current_time", timezone="Nowhere/Land")
        assert message.metadata["error_type"] == "MCPToolError"


async def test_the_git_server_reads_a_repository(installed: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "new.txt").touch()
    command = str(installed / "mcp-server-git")
    async with mcp("stdio", command=command, args=["--repository", str(tmp_path)]) as client:
        assert "git_status" in {tool.name for tool in client.tools}
        assert "new.txt" in (await call(client, "git_status", repo_path=str(tmp_path))).content
