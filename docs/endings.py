"""Writes the table of `docs/endings.md` from the engine's own: `python docs/endings.py`."""

from pathlib import Path

from refold import RunStatus, StopReason
from refold.engine import ENDINGS
from refold.modules.agent.hooks.stop_reasons import agent_stop_reason

PAGE = Path(__file__).with_name("endings.md")
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"


def agent_reason(reason: StopReason) -> str:
    """The Agent's word for a stop reason; it gives none while it waits."""
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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
