"""Capabilities to load: folders written from texts by path."""

from pathlib import Path

MANIFEST = "schema: 1\nname: intel\nversion: 1.0.0\ndescription: Looks things up.\n"

LOOKUP = '''
import typing as t
from refold.modules.agent import tool

@tool
def lookup(indicator: t.Annotated[str, "IP, domain, or hash"]) -> dict[str, str]:
    """Look up an indicator."""
    return {"indicator": indicator, "verdict": "unknown"}
'''

SKILL = "---\nname: recon\ndescription: How to look around\n---\nLook around.\n"

AGENT = """---
name: scout
description: Looks, and touches nothing
tools:
  "*": false
  LOOK*: true
---
You scout.
"""


def put(folder: Path, files: dict[str, str] | None = None, manifest: str = MANIFEST) -> Path:
    """Writes a capability: its manifest, and the files by their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"capability.yaml": manifest, **(files or {})}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
