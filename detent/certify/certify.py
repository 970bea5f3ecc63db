"""The matching walk: is a machine the target, on every word that it can read?

Go through the configurations of the machine and the states of the target side by side, breadth-first from their starts.
Every pair that a word meets is met once; at each, every symbol that may follow must make the machine say what the
target wants. If all do, then by induction on the length the machine is right on every word. If one does not, the way
there is a shortest word on which anything is wrong.

A wrong word is a *conflict* when another way leads to the same configuration with the target in another state, so that
no read-out could be right for both; else it is a read-out error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from detent._types import Ints
from detent.automata import Mealy, Moore, format_word
from detent.certify.subject import Plain, Subject
from detent.certify.target import Question, Says, Target, label_numbers, nothing_asked, refuse_strangers
from detent.errors import BudgetExceeded
from detent.runtime import Machine

# -- The answer of a certification: certified and how many of what, or the shortest word that goes wrong and why.


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
        at = f"after {format_word(self.word)}"
        if self.kind == "answer":
            return f"{at} the answer given is {self.said!r}; the right one is {self.wanted!r}"
        wrong = f"{at} the machine says {self.said!r}, and {self.wanted!r} is right"
        if self.other_word is None:
            return (
                f"{wrong}; a read-out error, for the configuration it is in belongs to that state of the target alone"
            )
        return (
            f"{wrong}; a conflict, for {format_word(self.other_word)} leads to the same configuration, "
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


EXTRA = 1_000_000
"""How many pairs there may be beyond one for each configuration, before the walk gives up."""


def certify(
    machine: Subject | Moore | Mealy | Machine,
    target: Moore | Mealy,
    *,
    labels: Says = "states",
    question: Question | None = None,
) -> Verdict:
    """Whether a machine says what the target wants, on every word that it can read.

    - `machine`: what was extracted from a model, or any machine.
    - `labels`: whether what it says are the target's states or its outputs.
    - `question`: what is asked on the way, for a machine that gives answers.
    """
    machine = machine.automaton if isinstance(machine, Machine) else machine
    subject = Plain.of(machine) if isinstance(machine, Moore | Mealy) else machine
    walk = _Walk(subject, Target.of(target, labels), question)
    failure = walk.follow()
    met = walk.met
    return Verdict(
        failure=failure, joint_indices=subject.joint_indices, restricted=bool((subject.tables < 0).any()),
        configurations=len(np.unique(met.at)),
        task_states=len(np.unique(met.task)), matching=np.stack([met.at, met.task, met.asking], axis=1),
        target=walk.target, question=question,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of a configuration and what the target makes of it, and the step that led to each."""

    at: Ints
    task: Ints
    asking: Ints
    came_from: Ints
    """The number of the pair before, -1 for the start."""
    by: Ints

    def some(self, which: Ints) -> _Pairs:
        return _Pairs(*(column[which] for column in self._columns()))

    def _columns(self) -> tuple[Ints, ...]:
        return (self.at, self.task, self.asking, self.came_from, self.by)

    @classmethod
    def joined(cls, parts: list[_Pairs]) -> _Pairs:
        return cls(*(np.concatenate(columns) for columns in zip(*(part._columns() for part in parts), strict=True)))


class _Walk:
    """Pairs in the order in which words meet them."""

    def __init__(self, subject: Subject, target: Target, question: Question | None) -> None:
        refuse_strangers(subject, target, question)
        self.subject, self.target, self.label_of = subject, target, label_numbers(subject, target)
        self.question = nothing_asked(target) if question is None else question.checked(target)
        start, none = (np.array([n]) for n in (0, -1))
        begin = _Pairs(start, np.array([target.start]), np.array([self.question.start]), none, none)
        self.levels = [begin]
        self.first = np.full(subject.tables.shape[1], -1)  # what was first met at every configuration
        self.first[0] = self._code(begin)[0]
        self.more: set[tuple[int, int]] = set()  # what else was met

    @property
    def met(self) -> _Pairs:
        return _Pairs.joined(self.levels)

    def follow(self, *, to_the_end: bool = False) -> Failure | None:
        """Follow all words; the failure of a shortest wrong one. `to_the_end` cares for one way to each place only."""
        count = 0
        while len(self.levels[-1].at):
            level = self.levels[-1]
            which, symbols = np.nonzero(self.subject.tables[:, level.at].T >= 0)
            before = level.some(which)
            after = _Pairs(
                at=self.subject.tables[symbols, before.at], task=self.target.tables[symbols, before.task].astype(int),
                asking=self.question.tables[symbols, before.asking], came_from=count + which, by=symbols,
            )  # fmt: skip
            if not to_the_end and (failure := self._wrong(before, after)) is not None:
                return failure
            count += len(level.at)
            self.levels.append(after.some(self._fresh(after, seconds=not to_the_end)))
        return None

    def _wrong(self, before: _Pairs, after: _Pairs) -> Failure | None:
        """The first step at which something wrong is said, if there is one."""
        finals = self.subject.finals[after.by, before.at]
        said, wanted = self.label_of[self.subject.labels[finals]], self.target.wanted[after.by, before.task]
        wrong = said != wanted
        asked = self.question.asked[after.by, before.asking]
        answers, right = self.subject.answers, self.question.right[after.task, asked]
        if answers is not None:
            wrong |= (asked >= 0) & (answers[finals] != right)
        if not wrong.any():
            return None
        i = int(wrong.argmax())
        word = self._word(int(after.came_from[i]), int(after.by[i]))
        if answers is not None and said[i] == wanted[i]:
            names = dict(enumerate(self.question.answers))
            return Failure("answer", word, names[int(answers[finals[i]])], names.get(int(right[i]), "none"))
        other = self._other_way(int(after.at[i]), int(after.task[i]))
        names = dict(enumerate(self.target.labels))
        kind = "read-out" if other is None else "conflict"
        return Failure(kind, word, names[int(said[i])], names[int(wanted[i])], *(other or ()))  # type: ignore[arg-type]

    def _other_way(self, at: int, task: int) -> tuple[tuple[str, ...], str] | None:
        """A word to the same configuration that brings the target to another state, and that state."""
        if at == 0 and task != self.target.start:
            return (), self.target.states[self.target.start]
        tree = _Walk(self.subject, self.target, self.question if self.question.answers else None)
        tree.follow(to_the_end=True)
        met = tree.met
        pair_at = np.full(len(self.first), -1)
        pair_at[met.at] = np.arange(len(met.at))
        symbols, before = np.nonzero(self.subject.tables == at)
        pairs = pair_at[before]
        tasks = self.target.tables[symbols, met.task[pairs]]
        others = np.flatnonzero((pairs >= 0) & (tasks != task))
        if not len(others):
            return None
        i = others[pairs[others].argmin()]
        return tree._word(int(pairs[i]), int(symbols[i])), self.target.states[int(tasks[i])]

    def _fresh(self, after: _Pairs, *, seconds: bool) -> Ints:
        """Which of these pairs were not met before, each once."""
        codes = self._code(after)
        unmet = np.flatnonzero(self.first[after.at] < 0)
        fresh = unmet[np.unique(after.at[unmet], return_index=True)[1]]
        self.first[after.at[fresh]] = codes[fresh]
        if seconds:
            others = np.flatnonzero(self.first[after.at] != codes).tolist()
            pairs = {(int(after.at[i]), int(codes[i])): i for i in reversed(others)}
            fresh = np.append(fresh, [i for pair, i in pairs.items() if pair not in self.more]).astype(int)
            self.more.update(pairs)
            if len(self.more) > EXTRA:
                raise BudgetExceeded(
                    f"more than {EXTRA:,} times a configuration stands for a further state of the target; "
                    "compare outputs rather than states, or give a target without states that behave alike."
                )
        return np.sort(fresh)

    def _code(self, pairs: _Pairs) -> Ints:
        return pairs.task * self.question.tables.shape[1] + pairs.asking

    def _word(self, pair: int, last: int) -> tuple[str, ...]:
        """How a pair was met, and a last symbol."""
        word, met = [last], self.met
        while pair > 0:
            word.append(int(met.by[pair]))
            pair = int(met.came_from[pair])
        return tuple(self.target.symbols[symbol] for symbol in reversed(word))
