"""A recorded run as host: its effects are not done again but served, in their recorded order."""

import re
from functools import partial
from typing import Any

import orjson

from ..errors import RefoldError
from ..traces import Effect
from .calls import Call, Recorded
from .context import Frame
from .held import Held
from .journal import Journal
from .marks import EffectSpec
from .refs import StateRefs, json_args, json_bytes
from .state import StateSchema

_MARK = re.compile(rb"<redacted:[^>]*>")


def unmarked(text: bytes) -> re.Pattern[bytes]:
    """What a recorded text may have been: each redaction mark in it stands for any text."""
    return re.compile(b".*?".join(re.escape(part) for part in _MARK.split(text)), re.DOTALL)


class UnrecordedEffectError(RefoldError, RuntimeError):
    """The code asked for an effect that the trace does not have; `request` is what it asked for."""

    def __init__(self, phase: str, name: str, args: Any) -> None:
        super().__init__(f"{name} was not asked for in {phase} when this trace was written")
        self.request = {"effect": name, "args": args}


class ServedRun:
    """Serves one trace's outcomes to the hooks that are run again."""

    writer = None
    """Nothing is written here; see Host."""

    def __init__(self, run_id: str, seed: int, path: str, first_step: int) -> None:
        self.run_id = run_id
        self.seed = seed
        self.path = path
        self.first_step = first_step
        self.journal = Journal(())
        self.missing: UnrecordedEffectError | None = None
        self._effects: tuple[Effect, ...] = ()
        self._refs = StateRefs(Held())
        self._value: Any = lambda result: result

    def enter(
        self, effects: tuple[Effect, ...], events: list[dict[str, Any]], state: StateSchema | None, value: Any
    ) -> None:
        """Serves the effects of one step from here on."""
        self._effects = effects
        self._value = value
        self.journal = Journal(effects, events, value=value)
        self._refs = StateRefs(Held(state))
        self.missing = None

    def begin(self, frame: Frame, spec: EffectSpec, args: dict[str, Any] | None, action: Any = None) -> Call:
        """See Host.begin: finds the recorded outcome, or notes that there is none."""
        form = json_args(args or {}, self._refs, lambda name, value: None)
        data = json_bytes(form)
        digest, n = frame.match(spec.name, data)
        recorded = self.journal.take(frame.phase, digest, n) or self._redacted(frame, spec, data)
        if recorded is None:
            self.missing = self.missing or UnrecordedEffectError(frame.phase, spec.name, orjson.loads(data))
            raise self.missing
        call = Call(None, frame, spec, (digest, n), "", recorded)
        call.deliver = partial(self.journal.give, recorded)
        return call

    def _redacted(self, frame: Frame, spec: EffectSpec, data: bytes) -> Recorded | None:
        """Finds a call whose recorded arguments hold redaction marks, each of which stands for any text."""
        for effect in self._effects:
            if effect.phase != frame.phase or effect.name != spec.name or effect.action is not None:
                continue
            shown = orjson.dumps(effect.args)
            if b"<redacted:" not in shown:
                continue
            if unmarked(shown).fullmatch(data):
                return self.journal.take(frame.phase, effect.digest, effect.n)
        return None

    async def turn(self, call: Call) -> None:
        """See Host.turn; waits until the outcomes that were recorded before this one were given."""
        assert call.recorded is not None
        await self.journal.turn(call.recorded, call.frame.phase)

    def emit(self, frame: Frame, name: str, data: dict[str, Any]) -> None:
        """See Host.emit: events are in the trace already."""

    def wall_time(self) -> float:
        """Not asked for: the clock is served like any effect."""
        raise UnrecordedEffectError("", "now", {})
