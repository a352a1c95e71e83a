"""Imports a capability's Python files, anew for each load.

They become modules of a package of its own. A file is a module of that package
(`refold_capability_intel_1.tools.scan`), whichever way it is asked for.

Its import statements are answered by its capability alone: each such module has its own `__builtins__`, whose
`__import__` knows the capability's folder, `dreadnode`, and what the capability put on its `sys.path`. So no capability
sees what another imports, and only the package is in `sys.modules`. An import inside a function works as well when the
function is called, in any thread.
"""

from .folders import is_there
from .importer import Importer

__all__ = ["Importer", "is_there"]
