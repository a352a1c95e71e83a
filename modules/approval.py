"""Paying invoices with a person's approval: a run that waits, can be killed meanwhile, and goes on in another process.

Read `game_of_24.py` first. Its four parts stand here in the same order; what is new is how a run waits for a person.

    refold run tasks/examples/approval.yaml --traces runs        # asks how much may be spent without asking, and ends
    refold resume runs                                           # another process, another day: asks, and goes on
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from ..engine import (
    Action,
    AgentModule,
    Decision,
    Observation,
    StateModel,
    StateSchema,
    ask,
    call_info,
    effect,
    perform,
)

# 1. The state: what is to be paid, what became of it, and what the person has said.


class Invoice(StateModel):
    """What is owed to whom, in whole euros."""

    to: str
    amount: int = Field(gt=0)


class Settled(StateModel):
    """What became of an invoice: how it was paid, or why it was not."""

    invoice: Invoice
    outcome: str


class Payments(StateSchema):
    """Invoices that are open, those that are settled, and the amount up to which nobody has to be asked."""

    open: list[Invoice] = []
    settled: list[Settled] = []
    limit: int | None = None
    book: str = ""


# 2. The tool, and the effect inside it. A run that waits is given up by its process; when the answer is there, the tool
#    is entered again from its first line. So a tool that asks does two things:
#
#    - What touches the world it *performs*: that is written down, and taken from there when the tool is entered again.
#    - It asks about exactly what it will do. The answer is bound to these words and details, and to no others.
#
#    As it does nothing else, it can be marked idempotent: after a crash it is just entered again.


class Approval(BaseModel):
    """Whether the payment may be made."""

    approved: bool = Field(description="Shall it be paid?")
    reason: str = Field(default="", description="Why, or why not; whoever sent the invoice may read it.")


@effect(idempotent=True)
async def pay(to: str, amount: int, limit: int, book: str) -> str:
    """Pays an invoice; one above the limit only once a person has approved of this very payment."""
    if amount > limit:
        said = await ask(f"Pay {amount} € to {to}?", Approval, details={"to": to, "amount": amount})
        if not said.approved:
            return f"refused: {said.reason}" if said.reason else "refused"
    return await perform(transfer, to, amount, book)


@effect(idempotent=True)
def transfer(to: str, amount: int, book: str) -> str:
    """Stands for a bank: writes the payment into a text file, if it is not there already.

    After a crash nobody knows whether a call that was under way has happened. This one may be made again, since its
    key (the same in every attempt) tells whether it has been made; a bank takes such a key with each order.
    """
    line = f"{call_info().key} {amount} {to}"
    path = Path(book)
    written = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if line not in written:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
    return f"paid {amount} € to {to}"


# 3. and 4. The module. `decide` waits by itself for what it needs to know before it can do anything: then the answer is
#    the observation that `reduce` gets. Nobody has to be there: without an answer the run is suspended, its process
#    ends, and `refold resume` (or `Engine.resume`) takes the answer in any other, where nothing is done a second time.


class PayInvoices(AgentModule[Payments]):
    """Pays one invoice after the other."""

    tools = {"pay": pay}

    def init_state(self, task: str, invoices: list[dict[str, Any]], book: str = "payments.txt") -> Payments:
        """The task's inputs: `invoices`, each with `to` and `amount`, and `book`, the file that payments go to."""
        return Payments(open=[Invoice(**invoice) for invoice in invoices], book=book)

    def decide(self, state: Payments) -> Decision:
        """Asks for the limit, then pays what is open; the end when nothing is."""
        if state.limit is None:
            return Decision.wait(
                prompt="Up to how many euros may be paid without asking you?",
                schema={"type": "integer", "minimum": 0},
                rationale=f"{len(state.open)} invoices are open",
            )
        if not state.open:
            paid = [each.invoice.amount for each in state.settled if each.outcome.startswith("paid")]
            return Decision.final(f"paid {sum(paid)} € for {len(paid)} of {len(state.settled)} invoices")
        invoice = state.open[0]
        return Decision.act(Action("pay", {**invoice.to_dict(), "limit": state.limit, "book": state.book}))

    def reduce(self, state: Payments, decision: Decision, observation: Observation) -> None:
        """Keeps the limit, or what became of the invoice."""
        if decision.mode == "wait":
            state.limit = observation.value
        elif decision.mode == "act":
            result = observation.results[0]
            outcome = result.output if result.ok else f"failed: {result.error}"
            state.settled.append(Settled(invoice=state.open.pop(0), outcome=outcome))
