"""What the documents say of the project is so: tables, links, commands, the picture."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from refold import ENDINGS, __version__
from refold.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_endings_is_the_engines() -> None:
    names: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "endings.py"))
    assert names["page"]() == (ROOT / "docs" / "endings.md").read_text(encoding="utf-8"), "run: python docs/endings.py"
    for reason in ENDINGS:
        assert f"| `{reason}` |" in names["table"]()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_of_the_project(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_of_the_project_that_is_named_is_there(page: Path) -> None:
    folders = "docs|engine|modules|refold|tasks|tests|traces"
    for path in re.findall(rf"`((?:{folders})/[\w./]*)`", page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), path


def test_every_command_of_the_readme_is_there() -> None:
    commands = re.findall(r"^\| `refold ([a-z]+(?: [a-z]+)?) ?[^`]*` \|", README, re.MULTILINE)
    assert len(commands) == 16
    for command in commands:
        result = CliRunner().invoke(app, [*command.split(), "--help"])
        assert result.exit_code == 0, command


def test_every_option_of_the_readme_is_there() -> None:
    for line in re.findall(r"^\| `refold ([a-z]+)[^`]*` \|(.*)\|$", README, re.MULTILINE):
        shown = CliRunner().invoke(app, [line[0], "--help"], env={"COLUMNS": "200"}).output
        for option in re.findall(r"`(--[a-z]+)", line[1]):
            assert option in shown, f"refold {line[0]} {option}"


def test_the_two_commands_are_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in re.findall(r"^\$ make (\w+)", README, re.MULTILINE):
        assert f"\n{command}:" in makefile


def test_the_picture_is_of_the_example_and_loads_nothing() -> None:
    picture = (ROOT / "docs" / "replay.svg").read_text(encoding="utf-8")
    assert "8&#160;/&#160;(3&#160;-&#160;(8&#160;/&#160;3))&#160;=&#160;24" in picture
    assert re.findall(r"https?://[^\s\"']+", picture) == ["http://www.w3.org/2000/svg"]
    drawn = runpy.run_path(str(ROOT / "docs" / "picture.py"))["draw"]()
    assert _words(drawn) == _words(picture), "run: python docs/picture.py"


def _words(picture: str) -> list[str]:
    """What the picture says, without the run's id and the times."""
    words = re.sub(r"<[^>]*>", "\n", picture).replace("&#160;", " ").split("\n")
    return [word.strip() for word in words if word.strip() and not re.search(r"\d ms|game-of-24-|replay-|\{", word)]


def test_the_changes_begin_with_this_version() -> None:
    assert f"\n## {__version__}, " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
