"""The answer of a certification: certified and how many of what, or the shortest word that goes wrong and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from detent.automata.running import Ints
from detent.certification.target import Question, Target

_SHOWN = 24

Kind = Literal["conflict", "read-out", "answer"]


@dataclass(frozen=True)
class Failure:
    """A shortest word on which the machine says something else than the target."""

    kind: Kind
    """A conflict: the same configuration belongs to two states of the target. Else what is said is wrong."""
    word: tuple[str, ...]
    said: str
    wanted: str
    other_word: tuple[str, ...] | None = None
    """A conflict: a word that leads to the same configuration,"""
    other_state: str | None = None
    """and the target elsewhere."""

    def explain(self) -> str:
        at = f"after {spelt(self.word)}"
        if self.kind == "answer":
            return f"{at} the answer given is {self.said!r}; the right one is {self.wanted!r}"
        wrong = f"{at} the machine says {self.said!r}, and {self.wanted!r} is right"
        if self.other_word is None:
            return (
                f"{wrong}; a read-out error, for the configuration it is in belongs to that state of the target alone"
            )
        return (
            f"{wrong}; a conflict, for {spelt(self.other_word)} leads to the same configuration, "
            f"and the target to {self.other_state!r}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdict:
    """Whether a machine is the target, on every word that was followed. True if it is."""

    failure: Failure | None
    joint_indices: int
    """Tuples of indices there are."""
    restricted: bool
    """Whether only the words of a grammar were followed."""
    configurations: int
    """How many states of the machine words reach: joint indices, for one layer without a convolution."""
    task_states: int
    """How many states of the target they stand for."""
    matching: Ints
    """Rows of (configuration, state of the target, state of the question): together they are met, and no others."""
    target: Target
    question: Question | None

    def __bool__(self) -> bool:
        return self.failure is None

    @property
    def bijection(self) -> bool:
        """Whether every configuration stands for one state of the target, and every such state has one."""
        return self.configurations == self.task_states == len(self.matching)

    def explain(self) -> str:
        if self.failure is not None:
            return f"not certified: {self.failure.explain()}."
        words = "every word of the grammar" if self.restricted else "every word"
        return (
            f"certified on {words}, at every length: they lead to {self.configurations:,} configurations "
            f"({self.joint_indices:,} joint indices), every read-out there is right, and {self.fit()}."
        )

    def fit(self) -> str:
        """How configurations and states of the target belong together."""
        states = f"{self.task_states:,} states of the target"
        if self.bijection:
            return f"each of {states} has one of them"
        if len(self.matching) > self.configurations:
            return f"they stand for {states}, some for several, which go on alike whatever is read"
        return f"they stand for {states}, with redundancy"


def spelt(word: tuple[str, ...]) -> str:
    """The word in quotes; of a long one the ends and the length."""
    if not word:
        return "the empty word"
    if len(word) <= _SHOWN:
        return f"'{' '.join(word)}'"
    half = _SHOWN // 2
    return f"'{' '.join(word[:half])} ... {' '.join(word[-half:])}' ({len(word)} symbols)"
