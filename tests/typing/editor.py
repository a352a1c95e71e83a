"""What an editor shows (pyright) of the code in README.md and docs/, and of the files beside this one.

    python tests/typing/editor.py

Errors must stand in the lines marked `# expect`, and nowhere else; the marked lines prove that the check can fail.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

import doc_pages  # noqa: E402

PAGES = ROOT / "build" / "pages"
_IMPORTS_EACH_OTHER = "# pyright: reportMissingImports=false\n"
_KNOWN_TO_READERS = "# pyright: reportRedeclaration=false, reportOptionalSubscript=false\n"
"""A page may show two ways to write one function, and subscripts what its reader knows to be there."""


def write_pages() -> list[Path]:
    """Write the blocks of each page as one module, and return their paths."""
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    written = []
    for page in doc_pages.PAGES:
        stem = page.stem.replace("-", "_").lower()
        shown = {f"{stem}_{name}": _IMPORTS_EACH_OTHER + text for name, text in doc_pages.files(page).items()}
        if code := doc_pages.code(page):
            shown[f"{stem}_page.py"] = "\n".join(code)
        for name, text in shown.items():
            (PAGES / name).write_text(_KNOWN_TO_READERS + text, encoding="utf-8")
            written.append(PAGES / name)
    return written


def expected(path: Path) -> set[tuple[str, int]]:
    """Return the places of the marked lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {(path.name, number) for number, line in enumerate(lines, 1) if "# expect" in line}


def main() -> int:
    """Run pyright, and print what differs from what is expected; 0 if nothing does."""
    pages = write_pages()
    files = [*sorted(HERE.glob("accepted*.py")), *sorted(HERE.glob("rejected*.py")), *pages]
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *map(str, files)]
    # Outside the checkout, refold is what is installed: an editable install must be seen, too.
    with tempfile.TemporaryDirectory() as outside:
        done = subprocess.run(command, capture_output=True, text=True, cwd=outside, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        print(f"pyright did not run: {done.stdout}{done.stderr}", file=sys.stderr)
        return 1
    if report["summary"]["filesAnalyzed"] < len(files):
        print(f"pyright looked at {report['summary']['filesAnalyzed']} files of {len(files)}", file=sys.stderr)
        return 1
    marked = set().union(*map(expected, files))
    found: dict[tuple[str, int], str] = {}
    for each in report["generalDiagnostics"]:
        if each["severity"] == "error":
            found[Path(each["file"]).name, each["range"]["start"]["line"] + 1] = each["message"]
    for name, line in sorted(found.keys() - marked):
        print(f"{name}:{line}: {found[name, line]}")
    for name, line in sorted(marked - found.keys()):
        print(f"{name}:{line}: pyright does not see the mistake that is expected here")
    print(f"pyright: {len(files)} files, {len(pages)} of them pages; {len(marked)} mistakes expected")
    return 1 if found.keys() ^ marked else 0


if __name__ == "__main__":
    sys.exit(main())
