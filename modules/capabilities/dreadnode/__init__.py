"""What `import dreadnode` gives the files of a capability.

It gives refold's names, and stand-ins for what refold does not have. No module of this name is put where others find
it: the modules are made for each capability, and only the capability's own import statements see them
(`capabilities.importing`).

A **stand-in** can be imported, subclassed, annotated with and used while a file is imported. Whatever uses it later
gets a NotInRefoldError, which says that refold does not have it.
"""

from .modules import DREADNODE, ForeignModule, foreign_module
from .standins import NotInRefoldError, importing

__all__ = ["DREADNODE", "ForeignModule", "NotInRefoldError", "foreign_module", "importing"]
