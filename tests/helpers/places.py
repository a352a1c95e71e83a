"""Where the repository's folders are, so that a test does not count the folders above it."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
HELPERS = TESTS / "helpers"
EXAMPLES = ROOT / "tasks" / "examples"
