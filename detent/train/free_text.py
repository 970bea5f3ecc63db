"""The machine of a stack for people who write text: sentences in any order, an answer at every question mark.

The network is read out once more, over all tellings and not only over the stories of its task, and what it answers is
compared with what is right. If it goes wrong somewhere there, its machine answers the stories it is certified on.
"""

from __future__ import annotations

from dataclasses import dataclass

from detent.automata import Mealy, distinguishing_word
from detent.errors import BudgetExceeded
from detent.extract import Budget, Extracted, extract
from detent.nn import Backbone
from detent.tasks.free_order_stories import NO_OUTPUT, NOT_UNDERSTOOD, free_order_grammar, reference_answers

ASKED = ("?",)
BUDGET = Budget(configurations=1_000_000, seconds=600.0)


@dataclass(frozen=True, eq=False)
class Told:
    """How a network does on tellings."""

    machine: Mealy | None
    """What it answers; None if it reaches more configurations than it may."""
    configurations: int
    wrong: tuple[str, ...] | None
    """A shortest telling that it answers wrongly."""

    @property
    def right(self) -> bool:
        return self.machine is not None and self.wrong is None


def tell(model: Backbone, found: Extracted) -> Told:
    """Read a network out over all tellings, and compare it with what is right; `found` knows the names."""
    people = len(found.answer_names)
    try:
        read = extract(
            model, labels=found.label_names, answers=found.answer_names, grammar=free_order_grammar(people),
            budget=BUDGET,
        )  # fmt: skip
    except BudgetExceeded:
        return Told(None, BUDGET.configurations, None)
    machine = answer_machine(read)
    return Told(machine, len(read.configurations), distinguishing_word(machine, reference_answers(people)))


def text_machine(model: Backbone, found: Extracted) -> tuple[Mealy, str]:
    """(the machine for text, which text that is): tellings if it is right on all of them, or else stories."""
    told = tell(model, found)
    if told.right and told.machine is not None:
        return told.machine, "sentences in any order"
    return answer_machine(found), "stories as the task tells them"


def answer_machine(extracted: Extracted) -> Mealy:
    """The machine that answers at every question mark."""
    return extracted.answer_machine(ASKED, elsewhere=NO_OUTPUT, forbidden=NOT_UNDERSTOOD)
