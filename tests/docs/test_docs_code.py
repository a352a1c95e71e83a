"""The code in README.md and docs/ runs, and prints what the comments beside it say."""

import contextlib
import io
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from doc_pages import PAGES, code
from places import ROOT

from refold import Engine
from refold.modules.examples.game_of_24 import GameOf24
from refold.tasks import load_task

_SAID = re.compile(r"^print\(.*\)  +# (.+)$", re.MULTILINE)


def run_all(page: Path, folder: Path) -> tuple[dict[str, Any], str]:
    """Runs a page's blocks one after the other, as one module."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.chdir(folder):
        program = folder / "page.py"
        program.write_text("\n".join(code(page)), encoding="utf-8")
        names = runpy.run_path(str(program), run_name="page")
    return names, printed.getvalue()


@pytest.mark.parametrize("page", [page for page in PAGES if code(page)], ids=lambda page: page.name)
def test_the_code_of_a_page_runs_and_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    _, printed = run_all(page, tmp_path)
    lines = iter(printed.splitlines())
    for said in _SAID.findall("\n".join(code(page))):
        assert said in lines, f"{page.name} says {said!r}; it printed:\n{printed}"


def test_the_readme_has_at_most_120_lines() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_each_promise_is_linked_to_its_tests() -> None:
    page = (ROOT / "docs" / "explanation" / "what-is-guaranteed.md").read_text(encoding="utf-8")
    promises = re.findall(r"^## \d\. .*?(?=^## )", page, re.MULTILINE | re.DOTALL)
    assert len(promises) == 6
    for promise in promises:
        assert "(../../tests/" in promise, promise.splitlines()[0]


def test_the_reader_of_the_format_page_reads_a_trace(tmp_path: Path) -> None:
    names, _ = run_all(ROOT / "docs" / "reference" / "trace-format.md", tmp_path)
    read = names["read"]
    task = load_task(ROOT / "tasks" / "examples" / "game_of_24.yaml")
    trace = Engine(GameOf24(), traces=tmp_path / "runs").run(task).trace
    path = trace.path
    assert path is not None
    seen = list(read(path))
    assert [record["seq"] for record, _ in seen] == list(range(len(trace.records)))
    assert seen[-1][1] == trace.final_state
    assert [state for record, state in seen if record["kind"] == "commit"] == [step.state for step in trace.steps]

    data = path.read_bytes()
    path.write_bytes(data[:-5])
    assert len(list(read(path))) == len(seen) - 1
    path.write_bytes(data.replace(b'"3 3 16"', b'"3 3 17"'))
    with pytest.raises(ValueError, match="not what was written"):
        list(read(path))


def test_the_reader_has_fifteen_lines() -> None:
    [reader] = [block for block in code(ROOT / "docs" / "reference" / "trace-format.md") if "def read(" in block]
    assert len(reader[reader.index("def read(") :].splitlines()) <= 15
