"""Logins: by a person once, kept on disk for their owner alone, refreshed in time, and never in a headless run."""

import json
import os
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import anyio
import pytest
from held_port import held_port, wait_until_listening
from mcp.shared.auth import OAuthMetadata, OAuthToken
from pydantic import AnyHttpUrl
from warm_python import warm_python

from refold.modules.agent import ToolCall, configure
from refold.modules.mcp import FileTokenStorage, MCPClient, MCPStatus, OAuthConfig, create_oauth_provider, mcp
from refold.modules.mcp.errors import MCPAuthRequiredError
from refold.modules.mcp.login import token_storage
from refold.modules.mcp.login.page import LoginPage

SERVER = str(Path(__file__).parent / "guarded_server.py")


@pytest.fixture
def life() -> int:
    return 3600


@pytest.fixture
def url(tmp_path: Path, life: int) -> Iterator[str]:
    configure(cache=tmp_path / "cache")
    with held_port() as port:
        with (tmp_path / "log").open("wb") as log:
            arguments = [*warm_python(), SERVER, str(port), str(tmp_path), str(life)]
            process = subprocess.Popen(arguments, stdout=log, stderr=log)
        wait_until_listening(process, port, tmp_path / "log")
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()
        process.wait()
    configure()


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stands for a person with a browser, who agrees to everything."""
    opened: list[str] = []

    def visit(address: str) -> bool:
        opened.append(address)

        def go() -> None:
            with urlopen(address, timeout=250) as answer:
                answer.read()

        threading.Thread(target=go, daemon=True).start()
        return True

    monkeypatch.setattr("webbrowser.open", visit)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("REFOLD_HEADLESS", raising=False)
    return opened


def steps(folder: Path) -> list[str]:
    path = folder / "steps"
    return path.read_text().split() if path.exists() else []


async def secret_of(client: MCPClient) -> str:
    message, _ = await client.tools[0].handle_tool_call(ToolCall.of("c", "secret", {}))
    return message.content


async def test_without_a_person_a_login_is_needed_and_no_browser_opens(
    url: str, browser: list[str], tmp_path: Path
) -> None:
    client = mcp("streamable-http", url=url, oauth=OAuthConfig())
    with pytest.raises(MCPAuthRequiredError, match="interactive=True"):
        await client.connect()
    assert client.status is MCPStatus.NEEDS_AUTH
    assert "401" in str(client.error)
    assert browser == []
    assert steps(tmp_path) == []


async def test_a_login_is_kept_and_used_without_a_person(url: str, browser: list[str], tmp_path: Path) -> None:
    client = mcp("streamable-http", url=url, oauth=OAuthConfig(client_name="tester"))
    before = time.time()
    await client.connect(interactive=True)
    after = time.time()
    assert client.status is MCPStatus.CONNECTED
    assert await secret_of(client) == "42"
    await client.disconnect()
    assert steps(tmp_path) == ["register", "authorize", "exchange"]
    path = tmp_path / "cache" / "mcp-auth.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = json.loads(path.read_text())[url]
    assert kept["client_info"]["client_name"] == "tester"
    assert before + 3600 <= kept["expires_at"] <= after + 3600
    async with mcp("streamable-http", url=url) as again:
        assert await secret_of(again) == "42"
    assert len(browser) == 1
    assert steps(tmp_path) == ["register", "authorize", "exchange"]


async def test_a_token_that_has_ended_is_refreshed_before_it_is_used(
    url: str, browser: list[str], tmp_path: Path
) -> None:
    client = mcp("streamable-http", url=url)
    await client.connect(interactive=True)
    await client.disconnect()
    path = tmp_path / "cache" / "mcp-auth.json"
    document = json.loads(path.read_text())
    document[url]["expires_at"] = time.time() - 5
    path.write_text(json.dumps(document))
    async with mcp("streamable-http", url=url) as again:
        assert await secret_of(again) == "42"
    assert steps(tmp_path) == ["register", "authorize", "exchange", "refresh"]
    assert json.loads(path.read_text())[url]["expires_at"] > time.time() + 3000
    assert len(browser) == 1


async def test_a_login_that_cannot_be_refreshed_needs_a_person(url: str, browser: list[str], tmp_path: Path) -> None:
    client = mcp("streamable-http", url=url)
    await client.connect(interactive=True)
    await client.disconnect()
    path = tmp_path / "cache" / "mcp-auth.json"
    document = json.loads(path.read_text())
    document[url]["expires_at"] = 1
    document[url]["tokens"]["refresh_token"] = "gone"
    path.write_text(json.dumps(document))
    with pytest.raises(MCPAuthRequiredError):
        await client.connect()
    assert client.status is MCPStatus.NEEDS_AUTH
    assert len(browser) == 1
    await client.connect(interactive=True)
    assert await secret_of(client) == "42"
    await client.disconnect()
    assert len(browser) == 2


async def test_tokens_tell_what_is_left_of_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_700_000_000.0]
    clock = SimpleNamespace(time=lambda: now[0], monotonic=time.monotonic, sleep=time.sleep)
    monkeypatch.setattr(token_storage, "time", clock)
    path = tmp_path / "auth.json"
    path.write_text("{corrupt")
    path.chmod(0o644)
    storage = FileTokenStorage("https://a", path)
    assert not storage.has_tokens()
    assert await storage.get_tokens() is None
    await storage.set_tokens(OAuthToken(access_token="x", expires_in=100))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    now[0] += 60.5
    tokens = await storage.get_tokens()
    assert tokens is not None
    assert tokens.expires_in == 39
    await storage.clear()
    assert not storage.has_tokens()


@pytest.mark.parametrize(
    "login",
    [
        {"tokens": {"no": "token"}, "client_info": 5, "metadata": []},
        *({"tokens": {"access_token": "a", "token_type": "Bearer"}, "expires_at": end}
          for end in ("soon", [1], float("inf"), float("nan"))),
    ],
)  # fmt: skip
async def test_a_login_that_cannot_be_read_counts_as_none(
    login: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "auth.json"
    path.write_text(json.dumps({"https://a": login}))
    storage = FileTokenStorage("https://a", path)
    assert not storage.has_tokens()
    assert (await storage.get_tokens(), await storage.get_client_info(), await storage.get_metadata()) == (None,) * 3
    assert storage.expires_at() is None
    assert "log in again" in caplog.text
    await storage.set_tokens(OAuthToken(access_token="x", expires_in=10**400))
    assert storage.has_tokens()


@pytest.mark.parametrize(
    "info", [5, [1], {"redirect_uris": "x"}, {"redirect_uris": ["http://127.0.0.1:99999/x"]}, {"redirect_uris": {}}]
)
def test_a_registration_that_cannot_be_read_keeps_no_login_away(tmp_path: Path, info: Any) -> None:
    path = tmp_path / "auth.json"
    path.write_text(json.dumps({"https://a": {"client_info": info}}))
    provider = create_oauth_provider("https://a", interactive=True, path=path)
    assert provider.page is not None
    provider.close()


WRITES = """
import sys
import anyio
from pathlib import Path
from typing import Any
from mcp.shared.auth import OAuthMetadata, OAuthToken
from pydantic import AnyHttpUrl
from refold.modules.mcp import FileTokenStorage
_, path, number = sys.argv
anyio.run(FileTokenStorage("https://" + number, Path(path)).set_tokens, OAuthToken(access_token=number))
"""


def write(path: Path, number: int) -> None:
    anyio.run(FileTokenStorage(f"https://{number}", path).set_tokens, OAuthToken(access_token=str(number)))


def test_thirty_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    threads = [threading.Thread(target=write, args=(path, number)) for number in range(26)]
    processes = [subprocess.Popen([*warm_python(), "-c", WRITES, path, str(number)]) for number in range(26, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait() for process in processes] == [0] * 4
    assert len(json.loads(path.read_text())) == 30
    assert sorted(os.listdir(tmp_path)) == ["auth.json", "auth.json.lock"]


async def test_nobody_comes_back_from_the_browser() -> None:
    page = LoginPage(seconds=0.3)
    page.start()
    assert await page.wait() == {}


async def test_the_port_that_is_taken_is_not_insisted_on() -> None:
    page = LoginPage()
    port = int(page.url.rpartition(":")[2].split("/")[0])
    other = LoginPage(port)
    assert other.url != page.url
    page.close()
    other.close()


@pytest.mark.parametrize("methods", [None, [], ["plain"]])
async def test_an_authorization_server_without_s256_is_refused(
    methods: list[str] | None, browser: list[str], tmp_path: Path
) -> None:
    provider = create_oauth_provider("http://127.0.0.1/mcp", interactive=True, path=tmp_path / "auth.json", server="s")
    at = AnyHttpUrl("http://127.0.0.1/")
    provider.context.oauth_metadata = OAuthMetadata(
        issuer=at, authorization_endpoint=at, token_endpoint=at, code_challenge_methods_supported=methods
    )
    assert provider.context.redirect_handler is not None
    with pytest.raises(MCPAuthRequiredError, match="S256"):
        await provider.context.redirect_handler("http://127.0.0.1/authorize")
    provider.close()
    assert browser == []
