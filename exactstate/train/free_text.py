"""The machine of a stack for text that people write: sentences in any order, an answer at every question mark.

The machine is extracted once more, over all texts of the free-order grammar and not only over the stories of the task,
and its answers are compared with the right ones. If one of them is wrong, the machine that answers the stories of the
task, on which the network is certified, is used instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from exactstate.automata import Mealy, distinguishing_word
from exactstate.errors import BudgetExceeded
from exactstate.extract import Budget, Extracted, extract
from exactstate.nn import Backbone
from exactstate.tasks.free_order_stories import NO_OUTPUT, NOT_UNDERSTOOD, free_order_grammar, reference_answers

QUERIES = ("?",)
BUDGET = Budget(configurations=1_000_000, seconds=600.0)


@dataclass(frozen=True, eq=False)
class FreeTextResult:
    """How a network answers texts in free order."""

    machine: Mealy | None
    """What it answers; None if it reaches more configurations than BUDGET allows."""
    configurations: int
    wrong: tuple[str, ...] | None
    """A shortest text that it answers wrongly."""

    @property
    def right(self) -> bool:
        """Whether every answer is right."""
        return self.machine is not None and self.wrong is None


def extract_free_text(model: Backbone, extracted: Extracted) -> FreeTextResult:
    """Extract the machine over all texts in free order, and compare its answers with the right ones."""
    people = len(extracted.answer_names)
    try:
        over_texts = extract(
            model, labels=extracted.label_names, answers=extracted.answer_names, grammar=free_order_grammar(people),
            budget=BUDGET,
        )  # fmt: skip
    except BudgetExceeded:
        return FreeTextResult(None, BUDGET.configurations, None)
    machine = _answers_of(over_texts)
    wrong = distinguishing_word(machine, reference_answers(people))
    return FreeTextResult(machine, len(over_texts.configurations), wrong)


def answer_machine(model: Backbone, extracted: Extracted) -> tuple[Mealy, str]:
    """(the machine that answers, which text it reads): free order if it is right on all of it, or else stories."""
    result = extract_free_text(model, extracted)
    if result.right and result.machine is not None:
        return result.machine, "sentences in any order"
    return _answers_of(extracted), "stories as the task tells them"


def _answers_of(extracted: Extracted) -> Mealy:
    """The machine that answers at every question mark."""
    return extracted.answer_machine(QUERIES, elsewhere=NO_OUTPUT, forbidden=NOT_UNDERSTOOD)
