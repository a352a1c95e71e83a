"""GAIA's and tau-bench's rules, written from what they publish, give our verdict on drawn rows."""

import math
import re
import string
from copy import deepcopy
from random import Random
from types import SimpleNamespace
from typing import Any

from refold.modules.evaluation.benchmarks import gaia_matches, tau_bench

PARTS = [
    "1",
    "1.50",
    "1,500",
    "$3",
    "7%",
    "1e3",
    "-2",
    ".5",
    "٣",
    "inf",
    "nan",
    "Red Fox",
    "red fox!",
    "a.b",
    "A B",
    "",
]
MARKS = ["", " ", ",", ";", ", ", "!", "$", "%", ".", "\n"]


def leaderboard(answer: str, truth: str) -> bool:
    """The leaderboard's `question_scorer`: numbers, then lists, then texts; an unreadable number is infinite."""

    def number(text: str, otherwise: float | None = None) -> float | None:
        try:
            return float(text)
        except ValueError:
            return otherwise

    def same(given: str, wanted: str, removed: str) -> bool:
        if (value := number(wanted)) is not None:
            return number(re.sub("[$%,]", "", given), math.inf) == value
        texts = [
            "".join(letter for letter in text if not letter.isspace() and letter not in removed).lower()
            for text in (given, wanted)
        ]
        return texts[0] == texts[1]

    if number(truth) is not None or not re.search("[,;]", truth):
        return same(answer, truth, string.punctuation)
    givens, wanteds = re.split("[,;]", answer), re.split("[,;]", truth)
    return len(givens) == len(wanteds) and all(same(a, b, "") for a, b in zip(givens, wanteds, strict=True))


def test_gaia_gives_the_leaderboards_verdict_on_drawn_answers() -> None:
    random, right = Random(1), 0
    for _ in range(20_000):
        words = [random.choice(PARTS) for _ in range(random.randint(1, 3))]
        truth = random.choice(MARKS).join(words)
        if random.random() < 0.3:
            words[0] = random.choice(PARTS)
        answer = random.choice(MARKS).join([random.choice(MARKS) + word for word in words])
        ours, theirs = gaia_matches(answer, truth), leaderboard(answer, truth)
        if re.search(r"inf", truth):  # the documented difference: there, any text is the number infinity
            assert not ours or theirs
        else:
            assert ours == theirs, (answer, truth)
        right += ours
    assert 2_000 < right < 18_000


def put(data: dict[str, Any], key: str, value: Any) -> None:
    data["items"][key] = value


def take(data: dict[str, Any], key: str) -> Any:
    return data["items"].pop(key)


def look(data: dict[str, Any], key: str) -> Any:
    return data["items"][key]


TOOLS: dict[str, Any] = {"put": put, "take": take, "look": look}
Calls = list[tuple[str, dict[str, Any]]]


class Env:
    """The benchmark's environment: calls change its data, errors are observations, and the reference is replayed."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.fresh, self.data, self.said = data, deepcopy(data), list[str]()

    def step(self, name: str, kwargs: dict[str, Any]) -> None:
        if name == "respond":
            self.said.append(kwargs["content"])
        elif name in TOOLS:
            try:
                TOOLS[name](self.data, **kwargs)
            except Exception:
                return

    def reward(self, actions: Calls, outputs: list[str]) -> float:
        after, self.data = self.data, deepcopy(self.fresh)
        for name, kwargs in actions:
            self.step(name, kwargs)
        told = all(any(each.lower() in text.lower().replace(",", "") for text in self.said) for each in outputs)
        return float(str(self.hashable(after)) == str(self.hashable(self.data)) and told)

    def hashable(self, item: Any) -> Any:
        if isinstance(item, dict):
            return tuple((key, self.hashable(value)) for key, value in sorted(item.items()))
        return tuple(map(self.hashable, item)) if isinstance(item, list) else item


def test_tau_bench_gives_the_environments_reward_on_drawn_conversations() -> None:
    random, passed = Random(2), 0

    def call() -> tuple[str, dict[str, Any]]:
        name, key = random.choice(["put", "take", "look", "think", "put"]), random.choice("abcd")
        return name, {"key": key} | ({"value": random.choice([1, 1.0, "1", [2, 3], None])} if name == "put" else {})

    for _ in range(3_000):
        data = {"items": {key: random.choice([1, "x", [1]]) for key in random.sample("abcd", 2)}}
        reference: Calls = [call() for _ in range(random.randint(0, 4))]
        outputs = random.sample(["10", "yes", "1,000", "Oslo"], random.choice([0, 0, 1, 2]))
        run = [each for each in reference if random.random() < 0.9] + [call()] * (random.random() < 0.2)
        contents = ["it is 1,0", "YES, of course", "oslo", "1,000", "10"]
        run += [("respond", {"content": random.choice(contents)}) for _ in range(random.randint(1, 3))]
        env = Env(data)
        for name, kwargs in run:
            env.step(name, kwargs)
        scorer = tau_bench(lambda data=data: data, TOOLS)  # type: ignore[misc]
        target = {"actions": [{"name": name, "kwargs": kwargs} for name, kwargs in reference], "outputs": outputs}
        steps = [SimpleNamespace(decision={"actions": [{"name": name, "args": kwargs}]}) for name, kwargs in run]
        ours = scorer.func(state={}, target=target, steps=steps, answer=None)
        assert ours.value == env.reward(reference, outputs), (data, run, target)
        passed += bool(ours.passed)
    assert 500 < passed < 2_500
