"""Modules that run others inside of their tools, for the tests of child runs."""

from typing import Any

from refold import Action, AgentModule, Decision, StateSchema, Trace, ask, effect, new_id, now, perform, rng, run_child
from refold.engine import CallUsage, ChildResult


class Log(StateSchema):
    said: list[str] = []
    plan: list[str] = []


@effect(usage=lambda answer: CallUsage(6, 4, 0.01), tokens=10)
def think(about: str) -> str:
    """Stands for a model."""
    return f"thought of {about}"


async def note(text: str) -> str:
    """An effect of a child: with a world, it leaves a mark there."""
    return await perform(think, text)


async def question(text: str) -> str:
    return str(await ask(text, str))


def fail(text: str) -> str:
    raise ValueError(text)


class Worker(AgentModule[Log]):
    """Does the words of its task, one a step: `note:x`, `ask:x`, `fail:x`, `chance`."""

    tools = {"note": note, "ask": question, "fail": fail}

    def init_state(self, task: str) -> Log:
        return Log(plan=task.split())

    def decide(self, state: Log) -> Decision:
        if state.current_step == len(state.plan):
            return Decision.final(" ".join(state.said))
        tool, _, text = state.plan[state.current_step].partition(":")
        if tool == "broken":
            raise RuntimeError(text)
        if tool == "chance":
            return Decision.act(
                Action("note", {"text": "luck"}), rationale=f"{rng('dice').random():.6f} {new_id()} {now().year}"
            )
        return Decision.act(Action(tool, {"text": text}))

    def reduce(self, state: Log, decision: Decision, observation: Any) -> None:
        state.said += [str(result.output) if result.ok else f"error {result.error}" for result in observation.results]
        if decision.rationale:
            state.said.append(decision.rationale)


def last_word(state: Log) -> list[str]:
    return state.said[-1:]


class Boss(AgentModule[Log]):
    """Hands each line of its task to a worker, all in one step; then it is done."""

    def __init__(self, worker: AgentModule[Any] | None = None, **options: Any) -> None:
        self.worker = worker or Worker()
        self.options = options
        self.seen: list[ChildResult] = []
        self.tools = {"hand": self.hand}

    async def hand(self, line: str) -> dict[str, Any]:
        child = await run_child(self.worker, line, **self.options)
        self.seen.append(child)
        return {"status": child.status, "final": child.final_result, "tokens": child.usage.tokens, "value": child.value}

    def init_state(self, task: str) -> Log:
        return Log(plan=task.splitlines())

    def decide(self, state: Log) -> Decision:
        if state.current_step:
            return Decision.final(" | ".join(state.said))
        return Decision.act([Action("hand", {"line": line}) for line in state.plan])

    def reduce(self, state: Log, decision: Decision, observation: Any) -> None:
        for result in observation.results:
            told = result.output
            state.said.append(f"{told['status']}: {told['final']}" if result.ok else f"error {result.error}")


def children_of(trace: Trace) -> list[Trace]:
    """The child runs that calls of this run have begun, in the order of their calls."""
    names = dict.fromkeys(r["child"] for r in trace.records if r.kind == "intent" and "child" in r)
    return [trace.relative(name) for name in names]


def family_of(trace: Trace) -> list[Trace]:
    """The run, its children, and theirs."""
    return [trace, *(each for child in children_of(trace) for each in family_of(child))]


def without_ids(result: Any) -> dict[str, Any]:
    """What a run came to, without ids."""
    return {"status": str(result.status), "final": result.final_result, "said": list(result.state.said)}
