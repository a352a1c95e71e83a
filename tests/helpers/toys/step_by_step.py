"""A run that takes a step for each line on its stdin, for tests that watch it: `python step_by_step.py FOLDER TASK`."""

import sys
from pathlib import Path

from refold.engine import Action, AgentModule, Decision, Engine, Observation, StateSchema


class Heard(StateSchema):
    """The lines so far."""

    lines: list[str] = []


def hear() -> str:
    """Wait for a line."""
    return sys.stdin.readline().strip()


class Listener(AgentModule[Heard]):
    """Hears a line in each step, until one says stop; after the line ask, the next one answers a question."""

    tools = {"hear": hear}

    def init_state(self, task: str) -> Heard:
        """Return a state without lines."""
        return Heard()

    def decide(self, state: Heard) -> Decision:
        """Return the next step."""
        if state.lines and state.lines[-1] == "stop":
            return Decision.final(f"heard {len(state.lines)} lines")
        if state.lines and state.lines[-1] == "ask":
            return Decision.wait(prompt="Go on?")
        return Decision.act(Action("hear"))

    def reduce(self, state: Heard, decision: Decision, observation: Observation) -> None:
        """Keep the line, or the answer."""
        state.lines += [] if observation.value is None else [observation.value]
        state.lines += [result.output for result in observation.results]


if __name__ == "__main__":
    Engine(Listener(), traces=Path(sys.argv[1]), on_wait=lambda request: hear()).run(sys.argv[2])
