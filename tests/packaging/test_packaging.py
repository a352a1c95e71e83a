"""What is shipped is what is in the folders, and importing it loads nothing that is not used."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from places import ROOT

import refold

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HEAVY = (
    "litellm",
    "mcp",
    "openai",
    "numpy",
    "pandas",
    "starlette",
    "uvicorn",
    "httpx",
    "typer",
    "rich",
    "hypothesis",
    "pytest",
)


def test_every_package_folder_is_listed_and_every_listed_one_is_there() -> None:
    tool = PROJECT["tool"]["setuptools"]
    real = {"refold": ROOT / "refold"} | {f"refold.{n}": ROOT / n for n in ("engine", "modules", "tasks", "traces")}
    found = set()
    for name, folder in real.items():
        for init in folder.rglob("__init__.py"):
            inside = init.parent.relative_to(folder)
            if not any((folder / Path(*inside.parts[: i + 1])).is_symlink() for i in range(len(inside.parts))):
                found.add(".".join((name, *inside.parts)))
    assert set(tool["packages"]) == found
    for name, folder in tool["package-dir"].items():
        assert real[name] == ROOT / folder


def test_the_links_in_the_package_lead_to_the_real_folders() -> None:
    for name in ("engine", "modules", "tasks", "traces"):
        link = ROOT / "refold" / name
        assert link.is_symlink()
        assert link.resolve() == ROOT / name


def test_no_python_file_stands_at_the_root_but_the_caption() -> None:
    assert [p.name for p in ROOT.glob("*.py")] == ["__init__.py"]


@pytest.mark.parametrize(
    "code",
    ["import refold", "from refold import *", "import refold.cli", "import refold.pytest_plugin",
     "import sys; sys.argv = ['refold', '--help']; import refold.cli"],
)  # fmt: skip
def test_importing_loads_no_package_that_is_not_used(code: str) -> None:
    allowed = {"typer", "rich"} if "cli" in code else set()
    allowed |= {"pytest"} if "plugin" in code else set()
    check = f"{code}\nimport sys\nprint(*[n for n in {HEAVY!r} if n in sys.modules])"
    out = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout.split()
    assert set(out) <= allowed


def test_the_facade_has_every_public_name_of_its_rooms() -> None:
    for room, names in refold._ROOMS.items():
        if room != "errors":
            shown = {n for n in import_module(f"refold.{room}").__all__ if not n.startswith("_")}
            assert set(names.split()) == shown
    for name in refold.__all__:
        assert getattr(refold, name) is not None
    assert set(refold.__all__) <= set(dir(refold))
    with pytest.raises(AttributeError, match="nonsense"):
        refold.nonsense  # noqa: B018


def test_modules_are_built_on_the_engines_public_names_alone() -> None:
    public = set(refold.__all__)
    for path in (ROOT / "modules").rglob("*.py"):
        for line in path.read_text().splitlines():
            if line.startswith("from ..engine") or line.startswith("from refold"):
                assert line.startswith(("from ..engine import", "from refold import")), f"{path}: {line}"
    assert public
