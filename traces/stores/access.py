"""The ways to open a store."""

from typing import Literal

Access = Literal["create", "write", "read"]
"""Create the store if it is missing; open an existing one; or open an existing one for reading only."""
