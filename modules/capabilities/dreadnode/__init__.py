"""The module `dreadnode` as the files of a capability import it.

It has refold's names, and stand-ins for names that refold does not have. Other code never sees it: the modules are made
for each capability, and only the capability's own import statements find them (`capabilities.importing`).

A **stand-in** can be imported, subclassed, annotated with and used while a file is imported. Whatever uses it later
gets a NotInRefoldError, which says that refold does not have it.
"""

from .modules import DREADNODE, ForeignModule, foreign_module
from .standins import NotInRefoldError, importing

__all__ = ["DREADNODE", "ForeignModule", "NotInRefoldError", "foreign_module", "importing"]
