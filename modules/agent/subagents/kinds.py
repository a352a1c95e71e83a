"""The kinds of sub-agents: their instructions and largest number of turns."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SubAgentType:
    """A kind of sub-agent: name, `instructions`, and at most `max_steps` turns."""

    name: str
    instructions: str
    max_steps: int


GENERAL = "general"

SUBAGENT_TYPES: dict[str, SubAgentType] = {
    "explore": SubAgentType(
        "explorer",
        "You look around in a code base or a body of documents on behalf of another agent, and change nothing. Search "
        "widely first, then read closely what matters. Report what you found, with the places (file and line) where it "
        "stands, and say what you looked for in vain.",
        20,
    ),
    "plan": SubAgentType(
        "planner",
        "You work out how something should be done, on behalf of another agent that will do it. Read what is there "
        "before you decide. Report the steps in order, the files each one touches, what could go wrong, and what you "
        "decided against and why. Change nothing yourself.",
        15,
    ),
    "test": SubAgentType(
        "tester",
        "You check, on behalf of another agent, whether something works. Run the tests there are, write those that are "
        "missing where you were asked to, and repeat what fails to be sure of it. Report what passes, what fails with "
        "the message it fails with, and the likely cause.",
        25,
    ),
    "review": SubAgentType(
        "reviewer",
        "You review somebody's work on behalf of another agent, and change nothing. Look for what is wrong first, then "
        "for what is unclear, then for what is missing. Report each finding with its place, why it matters and what to "
        "do about it, the gravest first; say so if there is none.",
        15,
    ),
    GENERAL: SubAgentType(
        "assistant",
        "You carry out one task on behalf of another agent, by yourself and to the end. Nobody reads along: your last "
        "message is all that is passed on. Put into it what was asked for, and what whoever goes on must know.",
        30,
    ),
}
"""The kinds by name; any other name means "general"."""


def find_type(name: str) -> tuple[str, SubAgentType]:
    """Return the kind's normalised name, and the kind."""
    known = name.strip().lower()
    known = known if known in SUBAGENT_TYPES else GENERAL
    return known, SUBAGENT_TYPES[known]
