"""Calls that the type checker must refuse, each marked with the code of its error; checked and never run."""

from refold import Action, Decision, Engine, RuntimeBudget, StopReason, ask_sync, perform_sync


def local(n: int) -> str:
    return str(n)


Decision.final(42)  # expect: arg-type
Decision.act(["look"])  # expect: list-item
Action("look", id=3)  # expect: arg-type
Engine("module")  # expect: arg-type
RuntimeBudget(max_steps="many")  # expect: arg-type
perform_sync(local, "three")  # expect: arg-type
ask_sync("?", bool, details=1).upper()  # expect: attr-defined
ask_sync("?", seconds="soon")  # expect: call-overload
reason = StopReason.tired  # expect: attr-defined
