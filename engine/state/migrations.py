"""Migrates a state's document from an older schema version to its class's own."""

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import StateMigrationError
from .frozen import thaw

Document = dict[str, Any]
Migration = Callable[[Document], Document]


def migrated(
    doc: Mapping[str, Any], wanted: int, migrations: Mapping[int, tuple[int, Migration]], name: str
) -> Document:
    """Return the document in version `wanted`, after as many migrations as that takes.

    `migrations` maps a version to the next version and the function from the one to the other. `name` is the state
    class's name, for messages. Raises StateMigrationError if no migrations lead to `wanted`, or the document is newer.
    """
    current: Document = dict(doc)
    seen: list[Any] = []
    while (version := current.get("schema_version", 1)) != wanted:
        if not isinstance(version, int):
            raise StateMigrationError(f"the document's schema_version is not a whole number, but {version!r:.80}")
        step = migrations.get(version)
        if step is None or version in seen:
            if version > wanted:
                raise StateMigrationError(
                    f"the document is of schema_version {version}, newer than this {name} ({wanted})"
                )
            trail = " -> ".join(str(v) for v in [*seen, version])
            raise StateMigrationError(
                f"no migration leads {name} from schema_version {trail} to {wanted}; "
                f"register one with @{name}.migration({version})"
            )
        seen.append(version)
        current = {**step[1](thaw(current)), "schema_version": step[0]}
    return current
