"""Which symbol and which label of a machine is which of the target: by name, or by number where it has no names."""

from __future__ import annotations

import numpy as np

from detent.automata.running import Ints
from detent.certification.subject import Subject
from detent.certification.target import Question, Target
from detent.errors import InvalidMachine


def refuse_strangers(subject: Subject, target: Target, question: Question | None) -> None:
    """Raise the error for a machine that reads other symbols, or gives no answers where some are wanted."""
    if subject.symbols != target.symbols and not (
        _unnamed(subject.symbols) and len(subject.symbols) == len(target.symbols)
    ):
        raise InvalidMachine(
            f"the machine reads {_some(subject.symbols)} and the target {_some(target.symbols)}; "
            "both read the same symbols in the same order."
        )
    if question is not None and subject.answers is None:
        raise InvalidMachine("the target asks questions, and the machine gives no answers: it has no second read-out.")


def label_numbers(subject: Subject, target: Target) -> Ints:
    """For every label of the machine the number that the target knows it by."""
    number = {name: n for n, name in enumerate(target.labels)}
    if all(name in number for name in subject.outputs):
        return np.array([number[name] for name in subject.outputs])
    if _unnamed(subject.outputs) and len(subject.outputs) == len(target.labels):
        return np.arange(len(target.labels))
    raise InvalidMachine(
        f"the machine says {_some(subject.outputs)}, and the {target.says} of the target are {_some(target.labels)}; "
        "give the labels those names when extracting, or compare with the target's "
        f"{'outputs' if target.says == 'states' else 'states'}."
    )


def _unnamed(names: tuple[str, ...]) -> bool:
    return names == tuple(map(str, range(len(names))))


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return f"{shown}, ... ({len(names)})" if len(names) > 4 else shown
