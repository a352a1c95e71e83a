"""Writes the tables of stop reasons from the engine's own: `python docs/scripts/endings.py`.

They are the table in `docs/reference/endings.md`, and the page's meanings in `refold/view/client/endings.js`.
"""

import json
from pathlib import Path

from refold import RunStatus, StopReason
from refold.engine import ENDINGS
from refold.modules.agent.trajectory.stop_reasons import agent_stop_reason

PAGE = Path(__file__).parents[1] / "reference" / "endings.md"
CLIENT = Path(__file__).parents[2] / "refold" / "view" / "client" / "endings.js"
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"


def agent_reason(reason: StopReason) -> str:
    """Return the Agent's stop reason for a stop reason of the engine.

    It is empty while the run waits: the Agent then has no stop reason.
    """
    status = ENDINGS[reason].status
    return "" if status is RunStatus.waiting else agent_stop_reason(reason, status)


def table() -> str:
    """The table, a row a stop reason."""
    rows = ["| stop reason | status | exit code | Agent stop reason | meaning |", "|---|---|---|---|---|"]
    for reason, ending in ENDINGS.items():
        row = [f"`{reason}`", str(ending.status), str(ending.exit_code), agent_reason(reason), ending.meaning]
        rows.append(f"| {' | '.join(row)} |".replace("|  |", "| |"))
    return "\n".join(rows) + "\n"


def page() -> str:
    """The whole page, its table made anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def client() -> str:
    """The meanings as the page has them."""
    meanings = {str(reason): ending.meaning for reason, ending in ENDINGS.items()}
    head = "/** What each stop reason means; written by `docs/scripts/endings.py` from the engine's table. */\n\n"
    text = json.dumps(meanings, indent=2).replace("\n}", ",\n}")
    for reason in meanings:
        text = text.replace(f'  "{reason}":', f"  {reason}:")
    return f"{head}/** @type {{Record<string, string>}} */\nexport const MEANINGS = {text}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    CLIENT.write_text(client(), encoding="utf-8")
