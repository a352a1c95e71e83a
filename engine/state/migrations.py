"""Migrates a state's older document to its class's schema version."""

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import StateMigrationError
from .frozen import thaw

Document = dict[str, Any]
Migration = Callable[[Document], Document]


def migrated(
    doc: Mapping[str, Any], wanted: int, migrations: Mapping[int, tuple[int, Migration]], name: str
) -> Document:
    """Return the document in version `wanted`, after all migrations.

    `migrations` maps a version to the next version and the function that migrates to it. `name` is the state class's
    name, for messages. Raises StateMigrationError if no migrations lead to `wanted`, or the document is newer.
    """
    current: Document = dict(doc)
    seen: list[Any] = []
    while (version := current.get("schema_version", 1)) != wanted:
        if not isinstance(version, int):
            raise StateMigrationError(f"the schema_version of a {name} must be a whole number, got {version!r:.80}")
        step = migrations.get(version)
        if step is None or version in seen:
            if version > wanted:
                raise StateMigrationError(
                    f"the document has schema_version {version}, and this {name} has {wanted}; "
                    f"use the newer code of {name}"
                )
            trail = " -> ".join(str(v) for v in [*seen, version])
            raise StateMigrationError(
                f"no migration leads {name} from schema_version {trail} to {wanted}; "
                f"register one with @{name}.migration({version})"
            )
        seen.append(version)
        current = {**step[1](thaw(current)), "schema_version": step[0]}
    return current
