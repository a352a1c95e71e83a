"""Imports a capability's Python files: anew for each load, as modules of a package of its own."""

import importlib
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from types import ModuleType

_loads = count(1)


class Importer:
    """Imports the files below a folder; relative imports between them work (`from .shared import client`)."""

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self._package = f"refold_capability_{re.sub('[^a-z0-9]', '_', name)}_{next(_loads)}"
        package = ModuleType(self._package)
        package.__path__ = [str(root)]
        sys.modules[self._package] = package

    def load(self, path: Path) -> ModuleType:
        """The file as a module; raises what its code raises, SystemExit among it."""
        parts = path.relative_to(self._root).with_suffix("").parts
        if not any("." in part for part in parts):
            importlib.invalidate_caches()
            return importlib.import_module(".".join([self._package, *parts]))
        name = ".".join([self._package, *(part.replace(".", "_") for part in parts)])
        if name in sys.modules:
            return sys.modules[name]
        spec = spec_from_file_location(name, path)
        assert spec is not None, f"{path} has no loader"
        assert spec.loader is not None, f"{path} has no loader"
        module = sys.modules[name] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module
