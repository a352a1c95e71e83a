"""The module `dreadnode` as the files of a capability import it.

It has refold's names, and stand-ins for names that refold does not have. The modules are made for each capability, and
only the capability's own import statements find them (`capabilities.imports`).

A **stand-in** can be imported, subclassed, used in annotations, and used while a file is imported. Any later use raises
NotInRefoldError.
"""
