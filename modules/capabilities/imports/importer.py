"""The package of one capability.

It imports the capability's files, and resolves the import statements in them.
"""

import builtins
import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ..dreadnode.modules import DREADNODE, ForeignModule, foreign_module
from ..dreadnode.standins import importing
from .folders import Folders
from .substitutes import LATER_NAMES, Importlib, ImportlibUtil, Sys, Typing

_loads = count(1)
_PREFIX = "refold_capability_"
_importers: dict[str, "Importer"] = {}
_invalidating = threading.Lock()
"""Held while Python's import caches are emptied.

Python's function fails if two threads call it at once: each deletes what the other one has found.
"""
_real_import = builtins.__import__


class Importer:
    """Imports the files below a folder, and the modules that these import."""

    def __init__(self, root: Path, name: str, stood_in: Callable[[str], None] = lambda name: None) -> None:
        """Create the importer of the capability in `root`.

        `stood_in` is called with each name of dreadnode that refold does not have.
        """
        self.package = f"{_PREFIX}{re.sub('[^a-z0-9]', '_', name)}_{next(_loads)}"
        self._stood_in = stood_in
        self._foreign: dict[str, ForeignModule] = {}
        self._sys = Sys()
        self._folders = Folders(root, self.package, self._sys)
        util = ImportlibUtil(self.spec_at, self.spec_of)
        self._later_typing: set[str] = set()
        self._substitutes: dict[str, ModuleType] = {
            "sys": self._sys,
            "typing": Typing(),
            "importlib": Importlib(self.import_module, util),
            "importlib.util": util,
        }
        self.builtins = {**vars(builtins), "__import__": self.import_}
        _importers[self.package] = self
        package = ModuleType(self.package)
        package.__path__ = [str(root)]
        sys.modules[self.package] = package
        if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Finder())
        with _invalidating:
            importlib.invalidate_caches()

    def load(self, path: Path) -> ModuleType:
        """Return the file as a module.

        Raises the errors of its code, including SystemExit.
        """
        return self._module_at(self._folders.name_of(path), path)

    def import_(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """Return an import statement's result; the arguments are those of `__import__`."""
        if level:
            return _real_import(name, globals, locals, fromlist or (), level)
        module = self._find_module(name, globals)
        if module is None:
            real = _real_import(name, globals, locals, fromlist or (), 0)
            return real if fromlist else self._substitute(name.partition(".")[0], globals) or real
        if fromlist:
            self._import_members(module, name, fromlist)
            return module
        return module if "." not in name else self._find_module(name.partition(".")[0], globals, name)

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        """Import a module as `importlib.import_module` does, for the capability."""
        if name.startswith("."):
            return importlib.import_module(name, package)
        module = self._find_module(name, None)
        return importlib.import_module(name) if module is None else module

    def spec_at(self, name: str, location: Any = None, **options: Any) -> ModuleSpec | None:
        """Return a spec as `importlib.util.spec_from_file_location` does.

        A file that is loaded by the spec also has the capability's builtins.
        """
        spec = importlib.util.spec_from_file_location(name, location, **options)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self)
        return spec

    def spec_of(self, name: str, package: str | None = None) -> ModuleSpec | None:
        """Return a spec as `importlib.util.find_spec` does, for the capability."""
        if name.partition(".")[0] == DREADNODE:
            return foreign_module(name, self._foreign, self._stood_in).__spec__
        own = None if name.startswith(".") else self._folders.own(name, None)
        return importlib.util.find_spec(name if own is None else own.name, package)

    def _find_module(self, name: str, globals: Mapping[str, object] | None, whole: str | None = None) -> Any:
        """Return the module of an absolute name; None if it is Python's.

        If `name` is the first part of a longer name, `whole` is the longer name.
        """
        top = name.partition(".")[0]
        if top == DREADNODE:
            return foreign_module(name, self._foreign, self._stood_in)
        if (substitute := self._substitute(name, globals)) is not None:
            return substitute
        if top in sys.stdlib_module_names:
            return None
        importer = (globals or {}).get("__file__")
        own = self._folders.own(whole or name, importer if isinstance(importer, str) else None)
        if own is None:
            return None
        if whole is not None:
            return sys.modules[own.top]
        return self._module_at(own.name, own.path)

    def _substitute(self, name: str, globals: Mapping[str, object] | None) -> ModuleType | None:
        """Return the substitute that a file gets for a module of Python.

        A file gets `typing` itself, unless it uses a name that `typing` lacks: code such as `dataclasses` compares a
        file's `typing` with the module.
        """
        if name == "typing" and (globals or {}).get("__name__") not in self._later_typing:
            return None
        return self._substitutes.get(name)

    def uses(self, module: str, names: frozenset[str]) -> None:
        """Record the names in the code of a module before it runs."""
        if names & LATER_NAMES:
            self._later_typing.add(module)

    def _module_at(self, name: str, path: Path) -> ModuleType:
        """Return the module of a file or folder by its full name.

        A file that has no dotted name is loaded from its path.
        """
        if path.is_dir() or path.suffix != ".py" or self._folders.is_plain(path):
            return importlib.import_module(name)
        if name in sys.modules:
            return sys.modules[name]
        spec = self.spec_at(name, path)
        assert spec is not None, f"{path} has no loader"
        assert spec.loader is not None, f"{path} has no loader"
        module = sys.modules[name] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        return module

    def _import_members(self, module: ModuleType, name: str, fromlist: Sequence[str]) -> None:
        """Import the modules that `from package import module` means.

        They are the names that the package itself does not have.
        """
        if isinstance(module, ForeignModule) or not hasattr(module, "__path__"):
            return
        wanted = getattr(module, "__all__", ()) if "*" in fromlist else fromlist
        for member in wanted:
            full = f"{module.__name__}.{member}"
            if not hasattr(module, member) and importlib.util.find_spec(full) is not None:
                importlib.import_module(full)


class _Loader(SourceFileLoader):
    """Loads a file of a capability with the capability's builtins."""

    def __init__(self, name: str, path: str, importer: Importer) -> None:
        super().__init__(name, path)
        self._importer = importer

    def exec_module(self, module: ModuleType) -> None:
        """Run the file."""
        vars(module)["__builtins__"] = self._importer.builtins
        code = self.get_code(module.__name__)
        if code is not None:
            self._importer.uses(module.__name__, frozenset(_names_in(code)))
        with importing():
            super().exec_module(module)


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)
        elif isinstance(constant, tuple):
            yield from (name for name in constant if isinstance(name, str))  # of `from typing import ...`


class _Finder(MetaPathFinder):
    """Finds the modules of capabilities' packages, and no others."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See MetaPathFinder."""
        importer = _importers.get(name.partition(".")[0])
        if importer is None or path is None:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path, importer)
        return spec
