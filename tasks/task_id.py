"""Task ids: names of trace files, derived if not given."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

LONGEST = 100
_RESERVED = {"CON", "PRN", "AUX", "NUL", *(f"{port}{n}" for port in ("COM", "LPT") for n in range(10))}


def id_problem(task_id: str) -> str | None:
    """Return why `task_id` cannot start a file name; None if it can."""
    if not task_id:
        return "must not be empty"
    if len(task_id.encode("utf-8", "surrogatepass")) > LONGEST:
        return f"must be at most {LONGEST} bytes long: it becomes a file name"
    if bad := re.search(r'[<>:"/\\|?*]', task_id):
        return f"must be usable as a file name: {bad[0]!a} is not"
    if not task_id.isprintable() or task_id != task_id.strip():
        return "must be usable as a file name: no control characters or odd spaces, no space at either end"
    if task_id[0] in ".-" or task_id[-1] == ".":
        return "must be usable as a file name: it cannot start with '.' or '-', nor end with '.'"
    if task_id.split(".")[0].upper() in _RESERVED:
        return "must be usable as a file name: Windows reserves this one"
    return None


def derived_id(objective: str, inputs: dict[str, Any], attachments: Sequence[Any] = ()) -> str:
    """Return the id of a task without one.

    It has words of the objective and a BLAKE2b digest of objective, inputs and attachments. The same task has the same
    id in every process: `derived_id("Make 24!", {})` is `"make-24-"` and ten hex digits.
    """
    plain = unicodedata.normalize("NFKD", objective).encode("ascii", "ignore").decode("ascii").lower()
    slug = "-".join(re.findall(r"[a-z0-9]+", plain))[:40].strip("-") or "task"
    document = [objective, inputs, attachments] if attachments else [objective, inputs] if inputs else [objective]
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), default=str)
    return f"{slug}-{blake2b(text.encode('ascii'), digest_size=5).hexdigest()}"
