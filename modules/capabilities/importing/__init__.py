"""Imports a capability's Python files: anew for each load, as modules of a package of its own.

A file is a module of the capability's package (`refold_capability_intel_1.tools.scan`), whichever way it is asked for.
Its import statements are answered by its capability alone: each such module has `__builtins__` of its own, whose
`__import__` knows the capability's folder, `dreadnode` and what it has put on its `sys.path`. So what one capability
imports is seen by no other, nothing but the package stands in `sys.modules`, and an import inside a function works as
well when the function is called, in whatever thread.
"""

from .folders import is_there
from .importer import Importer

__all__ = ["Importer", "is_there"]
