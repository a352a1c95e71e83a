"""Questions at a terminal: asked one after another, answered as typed, and nothing of a model's steers the screen."""

import builtins
import json
import random
import string
import sys
import unicodedata
from collections.abc import Iterator

import pytest

from refold.modules.tools import HumanPrompt, UserCancelledError, ask_user, confirm
from refold.modules.tools.human import QuestionAnswer
from refold.modules.tools.human.handlers import terminal_handler
from refold.modules.tools.human.prompts import HumanPromptOption, HumanQuestion
from refold.printable import printable, printable_json


class Terminal:
    """Answers what is asked for on stdin, and remembers what stood there."""

    def __init__(self, *lines: str) -> None:
        self.lines = iter(lines)
        self.asked: list[str] = []

    def __call__(self, prompt: str = "") -> str:
        self.asked.append(prompt)
        line = next(self.lines, None)
        if line is None:
            raise EOFError
        return line

    def isatty(self) -> bool:
        return True


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> Terminal:
    terminal = Terminal(*lines)
    monkeypatch.setattr(builtins, "input", terminal)
    monkeypatch.setattr(sys, "stdin", terminal)
    return terminal


async def test_questions_outside_of_a_run_are_asked_at_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "blue")
    assert "blue" in str(await ask_user("Which colour?"))
    assert "Which colour?" in capsys.readouterr().out
    typed(monkeypatch, "y")
    assert await confirm("Go on?")
    typed(monkeypatch)
    with pytest.raises(UserCancelledError):
        await ask_user("Which colour?")


async def test_a_bundle_is_asked_question_by_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [HumanPromptOption(label="red"), HumanPromptOption(label="green", description="as grass")]
    prompt = HumanPrompt(
        request_id="r",
        questions=[
            HumanQuestion(prompt="Which?", kind="choice", options=options, default_option="green"),
            HumanQuestion(prompt="Why?"),
        ],
    )
    terminal = typed(monkeypatch, "", "because")
    response = await terminal_handler(prompt)
    assert response.answers == [QuestionAnswer(selected_labels=["green"]), QuestionAnswer(custom_text="because")]
    assert terminal.asked == ["1 [green]> ", "2> "]
    assert "2) green: as grass" in capsys.readouterr().out
    typed(monkeypatch, "2", "")
    assert (await terminal_handler(prompt)).action == "cancel"


HOSTILE = (
    "\x1b[2J\x1b]0;title\x07\x9b31m\r\x08\u202e\u2066\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u061c\u180e\u3164\u115f"
    "\u2028\x85\U000e0041\U000e0101\ufe01\ufff9\ud800\x7f"
)


def unsafe() -> Iterator[str]:
    """What Unicode says is unseen, or steers, but for marks that are drawn (such as U+0600) and lines."""
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        kind = unicodedata.category(char)
        drawn = 0x600 <= code <= 0x605 or code in (0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)
        drawn = drawn or 0x13430 <= code <= 0x1345F
        if kind in ("Cc", "Cs", "Zl", "Zp") or (kind == "Cf" and not drawn):
            yield char


async def test_nothing_of_a_question_steers_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(5)
    bad = set(unsafe()) | set(HOSTILE) - set(string.printable)
    for _ in range(50):
        text = "".join(draw.choice([*HOSTILE, "a", " "]) for _ in range(30))
        text = text.replace("\ud800", "")  # a model's JSON holds none
        option = HumanPromptOption(label=f"yes{text}", description=text)
        question = HumanQuestion(
            prompt=text + "?", header=text, kind="choice", options=[option, HumanPromptOption(label="no")],
            default_option=option.label,
        )  # fmt: skip
        terminal = typed(monkeypatch, "")
        response = await terminal_handler(HumanPrompt(request_id="r", questions=[question], details=text))
        assert response.answers == [QuestionAnswer(selected_labels=[option.label])]
        shown = capsys.readouterr().out + "".join(terminal.asked)
        assert not bad & set(shown) - {"\n", "\t"}


def test_every_character_that_hides_or_steers_is_escaped() -> None:
    for char in unsafe():
        escape = f"\\u{ord(char):04x}" if ord(char) < 65536 else f"\\U{ord(char):08x}"
        assert printable(f"a{char}b") == f"a{escape}b"
        assert printable(char, lines=True) == (char if char in "\n\t" else printable(char))
    for text in ("ascii", "äöü ß", "日本語", "عربى", "👍 ❤️", "a b", "\u0600"):
        assert printable(text) == text


def test_json_reads_as_the_same_value() -> None:
    text = json.dumps({HOSTILE: [HOSTILE, "ä"]}, ensure_ascii=False)
    shown = printable_json(text)
    assert json.loads(shown) == json.loads(text)
    assert not set(unsafe()) & set(shown)
    assert "ä" in shown
