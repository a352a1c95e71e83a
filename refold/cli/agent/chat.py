"""What `refold agent` does without a goal: a chat that keeps the conversation, each turn of it a run with its trace."""

import sys

from rich.text import Text

from ...errors import RefoldError
from ...modules.agent import Trajectory
from ..exits import meaning, worst
from ..failures import one_line
from ..out import console, say
from ..panel import usage_text
from ..running import Manner, folder, hushed
from ..text import brief, clean
from ..wording import status_text
from .commands import COMMANDS, Chat, Leave
from .goal import Limits, introduce, one_turn
from .making import Made
from .reading import Lines
from .session import Session, Turn


def chat(made: Made, limits: Limits, manner: Manner, before: Trajectory | None = None) -> int:
    """Takes turns with the person until they leave; gives the exit code, from a pipe that of the worst turn."""
    folder(limits.traces)
    ended: list[tuple[str, int]] = []
    with hushed(manner), Session(made) as session:
        if before is not None:
            session.agent.trajectory = before
        lines = Lines(COMMANDS, shown=not manner.mute)
        at = Chat(session, limits, manner)
        if not manner.mute:
            _welcome(made, lines.interactive)
        while True:
            try:
                line = lines.next(_label(session))
                if not line:
                    continue
                if line.startswith("/"):
                    turn = at.command(line)
                else:
                    turn = one_turn(session, line, limits, manner, reset=False, headed=False)
            except (EOFError, Leave):
                break
            except KeyboardInterrupt:
                print()
                continue
            except RefoldError as error:
                print(f"refold: {one_line(str(error))}", file=sys.stderr, flush=True)
                ended.append(("failed", 2))
                continue
            if turn is not None:
                at.took(turn)
                ended.append((turn.summary.status, turn.code))
                _tell(turn, manner)
        if lines.interactive:
            _farewell(at)
    return 0 if lines.interactive else worst(ended)


def _label(session: Session) -> str:
    """What the prompt says of the policy."""
    label = str(getattr(session.agent.policy, "display_label", ""))
    return f"{clean(label)} " if label else ""


def _welcome(made: Made, interactive: bool) -> None:
    introduce(made)
    if interactive:
        model, tools = clean(str(made.agent.model_name)), len(made.agent.all_tools)
        text = f"{model}, {tools} tool{'s' if tools != 1 else ''}. /help tells the commands, Ctrl-C cancels a turn, "
        say(console(), Text(f"{text}Ctrl-D leaves.", "dim"))


def _tell(turn: Turn, manner: Manner) -> None:
    """How a turn went: nothing but a line, or what was wrong with it."""
    summary = turn.summary
    if manner.quiet and summary.final_result is not None:
        print(clean(summary.final_result, lines=True), flush=True)
    if manner.mute and summary.status == "completed":
        return
    out = console(sys.stderr) if manner.mute else console()
    line = Text()
    if summary.status != "completed":
        why = f": {meaning(summary.stop_reason)}" if summary.stop_reason and summary.error is None else ""
        line = status_text(summary.status, summary.stop_reason).append(f"{why}  ")
    line.append(f"{usage_text(summary)}  {clean(str(summary.trace))}", "dim")
    say(out, line)
    if summary.error is not None and summary.status == "failed":
        error = f"{summary.error.get('type')}: {summary.error.get('message')}"
        say(out, Text(brief(error, 400), "red"))
    for command in summary.answer_commands() if summary.waiting else ():
        say(out, Text("/resume, or ", "dim").append(clean(command), "bold"))
    out.file.flush()


def _farewell(at: Chat) -> None:
    if at.traces:
        last = clean(str(at.traces[-1]))
        say(console(), Text("last trace  ", "dim").append(last, "bold"))
        say(console(), Text("goes on with  ", "dim").append(f"refold agent --continue {last}", "bold"))
