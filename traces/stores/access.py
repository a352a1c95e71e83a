"""The ways to open a store."""

from typing import Literal

Access = Literal["create", "write", "read"]
"""Make the store if it is not there; open one that must be there; or open it for reading, and write nothing at all."""
