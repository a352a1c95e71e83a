"""`refold view`: look at runs in the browser."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from ...traces import Trace
from ...traces.analysis.locate import BRANCHES, branches_folder
from ...traces.file.store import SUFFIX
from ...view.actions import Modules
from ...view.serve import serve
from ..errors import InputError
from ..input.finding import find_trace
from ..input.importing import thing_at

ASK = "ask"
"""The value of `--allow-actions` for the module that each trace names, after a question."""


def view(
    named: Sequence[str],
    traces: Path,
    *,
    port: int | None,
    open_browser: bool,
    actions: str | None = None,
    trust: Sequence[Path] = (),
) -> int:
    """Serve a folder, or some traces, until Ctrl-C; return the exit code."""
    modules: Modules | None = None
    if actions is not None:
        from .view_modules import CommandModules

        modules = CommandModules(None if actions == ASK else actions, trust)
        if actions != ASK:
            thing_at(actions)  # a module that cannot be loaded is told of here
    folders = [Path(each) for each in named if Path(each).is_dir()]
    if len(folders) > 1 or (folders and len(named) > 1):
        raise InputError("name one folder, or traces of one folder")
    if not named and not traces.is_dir():
        raise InputError(f"there is no folder {traces}; name the folder of your traces: refold view FOLDER")
    if not named or folders:
        serve(folders[0] if folders else traces, port=port, open_browser=open_browser, modules=modules)
        return 0
    files = [find_trace(each, traces).absolute() for each in named]
    roots = {branches_folder(path).parent for path in files}
    if len(roots) > 1:
        raise InputError("the traces are in several folders; name a folder, or traces of one folder")
    runs = [Trace.load(path).run_id for path in files]  # a file that is no trace is told of here, and not on the page
    page = f"#/run/{quote(runs[0], safe='')}" if len(runs) == 1 else ""
    above = [path.parent.with_name(path.parent.name.removesuffix(BRANCHES) + SUFFIX) for path in files]
    shown = [*files, *(path for path in above if path.is_file() and path not in files)]
    serve(roots.pop(), shown, port=port, page=page, open_browser=open_browser, modules=modules)
    return 0
