"""A model that says what a script tells it to: for tests and demos, with no model at all."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from ....engine import call_info
from ....errors import NoRunError
from ....tasks.safe_yaml import YAMLError, load_yaml
from ..chat.messages import Message
from ..chat.usage import Usage
from .answers import as_generation
from .errors import ScriptExhaustedError
from .generation import Delta, Generation
from .params import GenerateParams
from .protocol import Capabilities
from .request_context import generation_number
from .stream_chunks import pieces


class ScriptedGenerator:
    """Gives the answers of a list, each an `Answer`, one a request; an exception among them is raised.

    Which one is due is told by the number of the request (see `generate`), so that a run that is resumed or forked
    goes on where the script was. Where no number is given it is counted, for each run on its own.

    `usage` is what an answer that does not say has cost.
    """

    def __init__(
        self,
        answers: Sequence[object],
        *,
        model: str = "scripted",
        usage: Usage | None = None,
        function_calling: bool | None = True,
    ) -> None:
        self.answers: list[Any] = list(answers)
        self.model = model
        self.usage = usage
        self._function_calling = function_calling
        self._asked: dict[str | None, int] = {}

    @classmethod
    def from_file(cls, path: Path | str) -> "ScriptedGenerator":
        """A script from a YAML or JSON file: a list of answers, or an object with `answers`, `model` and `usage`.

        Raises OSError for a file that cannot be read, ValueError that names the answer for one that is none.
        """
        path = Path(path)
        try:
            document: Any = load_yaml(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not text in UTF-8: {error}") from None
        except YAMLError as error:
            raise ValueError(f"{path} is neither YAML nor JSON: {error}") from None
        if isinstance(document, list):
            document = {"answers": document}
        known = ("answers", "model", "usage")
        if (
            not isinstance(document, dict)
            or not isinstance(document.get("answers"), list)
            or document.keys() - {*known}
        ):
            raise ValueError(
                f"{path} is not a script: it holds a list of answers, or an object with {', '.join(known)}"
            )
        for i, answer in enumerate(document["answers"]):
            _check(answer, f"{path}, answer {i + 1}")
        usage = Usage.from_openai(document.get("usage"))
        return cls(document["answers"], model=document.get("model") or f"scripted:{path}", usage=usage)

    async def generate(self, messages: Sequence[Message], params: GenerateParams) -> Generation:
        """The next answer.

        Raises ScriptExhaustedError when there is none, or the answer, if that is an error.
        """
        number = generation_number()
        if number is None:
            number = self._count(messages)
        if number >= len(self.answers):
            raise ScriptExhaustedError(
                f"the script {self.model!r} has {len(self.answers)} answers, and number {number + 1} was asked for"
            )
        return as_generation(self.answers[number], str(number), self.usage)

    async def stream(self, messages: Sequence[Message], params: GenerateParams) -> AsyncIterator[Delta | Generation]:
        """The next answer, word by word."""
        generation = await self.generate(messages, params)
        for piece in pieces(generation):
            yield piece
        yield generation

    async def capabilities(self) -> Capabilities:
        """Says that it makes native tool calls, unless told otherwise."""
        return Capabilities(function_calling=self._function_calling, source="script")

    def _count(self, messages: Sequence[Message]) -> int:
        """How many answers this run has had; a run not seen before has had those that are in its chat."""
        try:
            run = call_info().run_id
        except NoRunError:
            run = None
        if run not in self._asked:
            self._asked[run] = sum(m.role == "assistant" for m in messages) if run is not None else 0
        number = self._asked[run]
        self._asked[run] = number + 1
        return number


def _check(answer: Any, where: str) -> None:
    try:
        as_generation(answer)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None
    except Exception:  # noqa: BLE001 - an answer that is an error is an answer
        return
