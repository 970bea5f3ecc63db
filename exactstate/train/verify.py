"""Extract the machine of a trained NFSM, compare it with the task, and prove that rounding cannot change it."""

from __future__ import annotations

from dataclasses import replace

from exactstate.automata import Mealy, distinguishing_word
from exactstate.certify import Certificate, QuestionMachine, Verdict, certify
from exactstate.errors import BudgetExceeded
from exactstate.extract import Budget, Extracted, RoundingErrors, extract, rounding_errors
from exactstate.extract.verify import verify as run_and_compare
from exactstate.nn import Backbone
from exactstate.number_formats import NETWORK_FORMATS
from exactstate.tasks import Task
from exactstate.tasks.free_order_stories import NO_OUTPUT, NOT_UNDERSTOOD, free_order_grammar, reference_answers
from exactstate.tasks.shuffled_objects import PEOPLE

FREE_ORDER = Budget(configurations=1_000_000, seconds=600.0)
"""Of an extraction over sentences in any order."""
SAMPLES = (256, 2048)
"""Read-outs that are bounded in a coarser format before all of them are."""


def extract_and_certify(model: Backbone, task: Task, budget: Budget | None = None) -> tuple[Extracted, Verdict]:
    """The machine extracted from a model, and whether it is the task's: on all words, or on all stories."""
    machine, question = task.machine, question_of(task)
    if question is None:
        extracted = extract(model.eval(), symbols=machine.symbols, labels=task.labels, verify=False)
    else:
        extracted = extract(
            model.eval(), labels=task.labels, answers=question.answers, grammar=task.grammar, budget=budget or Budget(),
            verify=False,
        )  # fmt: skip
    verdict = certify(extracted, machine, labels=task.label_kind, question=question)
    if verdict:  # a network that is wrong may also be close to ties
        run_and_compare(model, extracted)
    return extracted, verdict


def question_of(task: Task) -> QuestionMachine | None:
    """What the words of a task ask, and the right answers, if they ask anything."""
    if task.question is None:
        return None
    people = PEOPLE[: task.question.n_answers]
    return QuestionMachine.at_end(task.question, task.machine, task.grammar, people)


def make_certificate(model: Backbone, extracted: Extracted, verdict: Verdict, *, title: str) -> Certificate:
    """What is proved of this network, with the rounding of every format down to the first that is too coarse.

    Where there are many read-outs, a format that fails on a sample of them is left out of the certificate: sharp bounds
    for all 31,680 of M11 take most of a minute.
    """
    errors: dict[str, RoundingErrors] = {}
    for name in NETWORK_FORMATS:
        samples = [count for count in SAMPLES if len(extracted.readout_inputs) > 8 * count] if errors else []
        if not all(margins_exceed_rounding(model, extracted, name, sample=count) for count in samples):
            break
        errors[name] = rounding_errors(model, extracted, name)
        certificate = Certificate.of(extracted, verdict, name=title, rounding=errors)
        if name not in certificate.proved:
            break
    return certificate


def margins_exceed_rounding(
    model: Backbone, extracted: Extracted, format: str = "float32", *, sample: int = SAMPLES[0]
) -> bool:
    """Whether margins exceed the rounding of a format: of every column in use, and of a sample of the read-outs."""
    some = slice(None, None, max(1, len(extracted.readout_inputs) // sample))
    part = replace(
        extracted, readout_inputs=extracted.readout_inputs[some], label_ids=extracted.label_ids[some],
        label_margins=extracted.label_margins[some],
        answer_ids=None if extracted.answer_ids is None else extracted.answer_ids[some],
        answer_margins=None if extracted.answer_margins is None else extracted.answer_margins[some],
    )  # fmt: skip
    errors = rounding_errors(model, part, format, verify=False)
    columns = zip(extracted.layers, errors.columns, strict=True)
    return bool((0.5 * part.label_margins > errors.labels).all()) and all(
        bool((0.5 * layer.margins > off)[layer.used].all()) for layer, off in columns
    )


def answer_machine(model: Backbone, extracted: Extracted) -> tuple[Mealy, str]:
    """(the machine that answers at every question mark, which text it reads).

    Sentences in any order if it is right on all of them, or else the stories of the task, on which it is certified.
    """
    machine, _, wrong = answers_in_any_order(model, extracted)
    if machine is not None and wrong is None:
        return machine, "sentences in any order"
    return _answers_of(extracted), "stories as the task tells them"


def answers_in_any_order(model: Backbone, extracted: Extracted) -> tuple[Mealy | None, int, tuple[str, ...] | None]:
    """(what a network answers to sentences in any order, the configurations that it reaches, a shortest wrong text).

    No machine where it reaches more configurations than FREE_ORDER allows.
    """
    people = len(extracted.answer_names)
    try:
        over_texts = extract(
            model, labels=extracted.label_names, answers=extracted.answer_names, grammar=free_order_grammar(people),
            budget=FREE_ORDER.restarted(),
        )  # fmt: skip
    except BudgetExceeded:
        return None, FREE_ORDER.configurations, None
    machine = _answers_of(over_texts)
    return machine, len(over_texts.configurations), distinguishing_word(machine, reference_answers(people))


def _answers_of(extracted: Extracted) -> Mealy:
    return extracted.answer_machine(("?",), elsewhere=NO_OUTPUT, forbidden=NOT_UNDERSTOOD)
