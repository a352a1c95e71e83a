"""Modules that a capability's files get in place of Python's.

Python's modules would let them change other code, or lack a name.
"""

import importlib
import importlib.util
import sys
import typing
from collections.abc import Callable
from types import ModuleType
from typing import Any

import typing_extensions

LATER_NAMES = frozenset(name for name in typing_extensions.__all__ if not hasattr(typing, name))
"""The names that `typing` has, or may have, in later Pythons."""


class _Over(ModuleType):
    """A module with the names of another one, some of them replaced."""

    _own: frozenset[str] = frozenset()

    def __init__(self, over: ModuleType) -> None:
        super().__init__(over.__name__, over.__doc__)
        vars(self)["_over"] = over

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_over"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._own:
            super().__setattr__(name, value)
        else:
            setattr(vars(self)["_over"], name, value)

    def __dir__(self) -> list[str]:
        return sorted({*dir(vars(self)["_over"]), *self._own})


class Sys(_Over):
    """`sys`, with a `path` that is the capability's own."""

    _own = frozenset({"path"})

    def __init__(self) -> None:
        super().__init__(sys)
        self.path = list(sys.path)
        vars(self)["_before"] = frozenset(sys.path)

    def added(self) -> list[str]:
        """Return the folders that the capability put on its path, in order."""
        before = vars(self)["_before"]
        return [str(each) for each in self.path if each and str(each) not in before]


class Typing(_Over):
    """`typing` with the names of later Pythons, such as `override`."""

    def __init__(self) -> None:
        super().__init__(typing)

    def __getattr__(self, name: str) -> Any:
        if hasattr(typing, name) or not hasattr(typing_extensions, name):
            return getattr(typing, name)
        return getattr(typing_extensions, name)


class ImportlibUtil(_Over):
    """`importlib.util` that finds specs for the capability."""

    _own = frozenset({"find_spec", "spec_from_file_location"})

    def __init__(self, spec_at: Callable[..., Any], spec_of: Callable[..., Any]) -> None:
        super().__init__(importlib.util)
        self.spec_from_file_location = spec_at
        self.find_spec = spec_of


class Importlib(_Over):
    """`importlib` with the capability's `import_module`."""

    _own = frozenset({"import_module", "util"})

    def __init__(self, import_module: Callable[..., Any], util: ModuleType) -> None:
        super().__init__(importlib)
        self.import_module = import_module
        self.util = util
