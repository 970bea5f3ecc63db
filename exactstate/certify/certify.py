"""The product walk: does a machine compute the target, on every word that it can read?

    A  symbols     n  states of the machine

Pairs of a configuration of the machine and a state of the target are visited breadth-first from the initial pair, each
once. At each pair, every permitted symbol must make the machine output what the target does. If all do, then by
induction on the length the output after every word is the target's. If one does not, the path to it is a shortest word
on which the two differ.

A failure is a *conflict* if another word leads to the same configuration with the target in another state, so that no
read-out could be correct for both; otherwise it is a *read-out* error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from exactstate._types import MISSING, Bools, Ints
from exactstate.automata import Mealy, Moore, format_word
from exactstate.certify.target import LabelKind, QuestionMachine, Target, in_order, target_labels
from exactstate.errors import BudgetExceeded, InvalidInput, InvalidMachine
from exactstate.extract.result import Extracted
from exactstate.runtime import Machine

MAX_EXTRA_PAIRS = 1_000_000
"""Pairs beyond one for each configuration, before the walk gives up."""
MAX_PAIRS = 100_000
"""Pairs after which the search for counterexamples ends."""


@dataclass(frozen=True)
class Failure:
    """A shortest word on which the machine and the target differ."""

    kind: Literal["conflict", "read-out", "answer"]
    word: tuple[str, ...]
    output: str
    """The label or answer of the machine after the word."""
    wanted: str
    """That of the target."""
    other_word: tuple[str, ...] | None = None
    """For a conflict: a word that leads to the same configuration, but"""
    other_state: str | None = None
    """the target to this other state."""

    def explain(self) -> str:
        after = f"after {format_word(self.word)}"
        if self.kind == "answer":
            return f"{after} the answer is {self.output!r}; the correct answer is {self.wanted!r}"
        wrong = f"{after} the machine outputs {self.output!r}, the target {self.wanted!r}"
        if self.other_word is None:
            return f"{wrong}; a read-out error: the configuration belongs to this one state of the target"
        return (
            f"{wrong}; a conflict: {format_word(self.other_word)} leads to the same configuration, "
            f"but the target to {self.other_state!r}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdict:
    """The result of a certification. True if the machine computes the target on every word that was followed."""

    failure: Failure | None
    joint_indices: int
    """The number of tuples of indices, reached or not."""
    restricted: bool
    """Whether only the words of a grammar were followed."""
    configurations: int
    """The number of states of the machine that words reach: joint indices, for one layer without a convolution."""
    task_states: int
    """The number of states of the target that they represent."""
    matching: Ints
    """Rows of (configuration, state of the target, state of the question): all that words reach together."""
    target: Target
    question: QuestionMachine | None

    def __bool__(self) -> bool:
        return self.failure is None

    @property
    def bijection(self) -> bool:
        """Whether configurations and reached states of the target correspond one to one."""
        return self.configurations == self.task_states == len(self.matching)

    def explain(self) -> str:
        if self.failure is not None:
            return f"not certified: {self.failure.explain()}."
        words = "every word of the grammar" if self.restricted else "every word"
        what = "the output after"
        if self.question is not None and len(self.target.labels) == 1:
            what = "every answer in"
        return (
            f"certified: {what} {words} of any length equals the target's; {self.configurations:,} "
            f"configurations are reached ({self.joint_indices:,} joint indices), and {self.correspondence()}."
        )

    def correspondence(self) -> str:
        """How configurations and states of the target correspond, in words."""
        states = f"{self.task_states:,} target states"
        if self.bijection:
            return f"each of {states} has one configuration"
        if len(self.matching) > self.configurations:
            return f"they represent {states}, some configurations several equivalent ones"
        return f"they represent {states}, some of them by several configurations"


def certify(
    machine: Extracted | Moore | Mealy | Machine,
    target: Moore | Mealy,
    *,
    labels: LabelKind = "states",
    question: QuestionMachine | None = None,
) -> Verdict:
    """Whether a machine outputs what the target does, on every word that it can read.

    - `machine`: the result of an extraction, or any machine.
    - `labels`: whether its labels are the target's states or its outputs.
    - `question`: what is asked on the way, for a machine that gives answers.
    """
    found = _Transitions.of(machine)
    if found.answers is not None and len(found.label_names) == 1 and question is None:
        raise InvalidInput(
            "this machine has one label and says nothing but answers: pass the question that it answers."
        )
    walk = _ProductWalk(found, Target.of(target, labels, merged=question is None), question)
    failure = walk.run()
    pairs = walk.pairs
    return Verdict(
        failure=failure, joint_indices=walk.machine.joint_indices, restricted=bool((walk.machine.tables < 0).any()),
        configurations=len(np.unique(pairs.at)), task_states=len(np.unique(pairs.state)),
        matching=np.stack([pairs.at, pairs.state, pairs.asking], axis=1), target=walk.target, question=question,
    )  # fmt: skip


def counterexamples(
    machine: Extracted | Mealy, target: Moore | Mealy, *, labels: LabelKind = "states", most: int = 256
) -> list[tuple[str, ...]]:
    """Words after which the machine outputs something else than the target, shortest first: a shortest for each wrong
    step of the product walk, which ends after MAX_PAIRS pairs.

    Of more than `most`, the first half are the shortest, and the others are spread evenly over the rest.
    """
    walk = _ProductWalk(_Transitions.of(machine), Target.of(target, labels), None)
    before, symbols = walk.wrong_steps(MAX_PAIRS)
    if len(before) > most:
        spread = np.linspace(most // 2, len(before) - 1, most - most // 2).astype(np.int64)
        chosen = np.concatenate([np.arange(most // 2), spread])
        before, symbols = before[chosen], symbols[chosen]
    pairs = walk.pairs
    return [walk.word(pairs, *step) for step in zip(before.tolist(), symbols.tolist(), strict=True)]


@dataclass(frozen=True, eq=False)
class _Transitions:
    """A machine as arrays; state 0 is the initial one. -1 where the grammar forbids a symbol."""

    symbols: tuple[str, ...]
    label_names: tuple[str, ...]
    tables: Ints
    """A n: successors."""
    labels: Ints
    """A n"""
    answers: Ints | None
    """A n"""
    joint_indices: int

    @classmethod
    def of(cls, machine: Extracted | Moore | Mealy | Machine) -> _Transitions:
        if isinstance(machine, Extracted):
            answers = None if machine.answer_ids is None else machine.answers
            return cls(
                machine.symbols, machine.label_names, machine.tables, machine.readout, answers, machine.joint_indices
            )
        mealy = (machine.automaton if isinstance(machine, Machine) else machine).to_mealy()
        order = np.array([mealy.start, *(q for q in range(mealy.n_states) if q != mealy.start)])
        tables = np.argsort(order)[mealy.tables[:, order]]
        return cls(mealy.symbols, mealy.outputs, tables, mealy.readout[:, order], None, mealy.n_states)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of a configuration and a state of the target (and of the question), and the step that led to each."""

    at: Ints
    state: Ints
    asking: Ints
    parent: Ints
    """The number of the pair before, -1 for the initial one."""
    symbol: Ints

    def _columns(self) -> tuple[Ints, ...]:
        return (self.at, self.state, self.asking, self.parent, self.symbol)

    def take(self, which: Ints) -> _Pairs:
        return _Pairs(*(column[which] for column in self._columns()))

    @classmethod
    def joined(cls, parts: list[_Pairs]) -> _Pairs:
        return cls(*(np.concatenate(columns) for columns in zip(*(part._columns() for part in parts), strict=True)))


class _ProductWalk:
    """Pairs in breadth-first order."""

    def __init__(self, machine: _Transitions, target: Target, question: QuestionMachine | None) -> None:
        target = in_order(target, machine.symbols)
        if question is not None and machine.answers is None:
            raise InvalidMachine("the task asks for answers, but the machine gives none: it has no answer head.")
        self.machine, self.target = machine, target
        self.target_label = target_labels(machine.label_names, target)
        self.question = QuestionMachine.silent(target) if question is None else question.checked(target)
        zero, none = np.array([0]), np.array([MISSING])
        initial = _Pairs(zero, np.array([target.start]), np.array([self.question.start]), none, none)
        self.levels = [initial]
        self.first = np.full(machine.tables.shape[1], MISSING)  # the first pair's code at every configuration
        self.first[0] = self._code(initial)[0]
        self.others: set[tuple[int, int]] = set()  # further pairs: (configuration, code)

    @property
    def pairs(self) -> _Pairs:
        return _Pairs.joined(self.levels)

    def run(self) -> Failure | None:
        """Follow all words; the failure of a shortest wrong one."""
        for before, after in self.steps():
            wrong, label, answer, correct = self._compared(before, after)
            if wrong.any():
                return self._failure(after, int(wrong.argmax()), label, answer, correct)
        return None

    def steps(self, *, one_path_each: bool = False) -> Iterator[tuple[_Pairs, _Pairs]]:
        """All steps from the pairs of a level, before and after; then the new pairs are the next level.

        With `one_path_each` each configuration is visited once.
        """
        count = 0
        while len(self.levels[-1].at):
            level = self.levels[-1]
            which, symbols = np.nonzero(self.machine.tables[:, level.at].T >= 0)
            before = level.take(which)
            after = _Pairs(
                at=self.machine.tables[symbols, before.at], state=self.target.tables[symbols, before.state].astype(int),
                asking=self.question.tables[symbols, before.asking], parent=count + which, symbol=symbols,
            )  # fmt: skip
            yield before, after
            count += len(level.at)
            self.levels.append(after.take(self._new(after, several=not one_path_each)))

    def wrong_steps(self, most_pairs: int) -> tuple[Ints, Ints]:
        """(the number of the pair before, the symbol) of all steps with a wrong output, until so many pairs are
        visited."""
        found = []
        for before, after in self.steps():
            wrong = self._compared(before, after)[0]
            found.append(np.stack([after.parent[wrong], after.symbol[wrong]]))
            if sum(len(level.at) for level in self.levels) >= most_pairs:
                break
        pairs, symbols = np.concatenate(found, axis=1)
        return pairs, symbols

    def _compared(self, before: _Pairs, after: _Pairs) -> tuple[Bools, Ints, Ints | None, Ints | None]:
        """(whether the output of each step is wrong, the machine's label, its answer, the correct answer)."""
        label = self.target_label[self.machine.labels[after.symbol, before.at]]
        wrong = label != self.target.wanted[after.symbol, before.state]
        if self.machine.answers is None:
            return wrong, label, None, None
        queries = self.question.queries[after.symbol, before.asking]
        answer = self.machine.answers[after.symbol, before.at]
        correct = self.question.correct[after.state, queries]
        return wrong | ((queries >= 0) & (answer != correct)), label, answer, correct

    def _failure(self, after: _Pairs, i: int, label: Ints, answer: Ints | None, correct: Ints | None) -> Failure:
        """What is wrong at step i."""
        pairs = self.pairs
        word = self.word(pairs, int(after.parent[i]), int(after.symbol[i]))
        wanted = int(self.target.wanted[after.symbol[i], pairs.state[after.parent[i]]])
        if label[i] == wanted:
            assert answer is not None
            assert correct is not None
            names = dict(enumerate(self.question.answers))
            return Failure("answer", word, names[int(answer[i])], names.get(int(correct[i]), "none"))
        labels, other = self.target.labels, self._other_word(int(after.at[i]), int(after.state[i]))
        if other is None:
            return Failure("read-out", word, labels[int(label[i])], labels[wanted])
        return Failure("conflict", word, labels[int(label[i])], labels[wanted], *other)

    def _other_word(self, at: int, state: int) -> tuple[tuple[str, ...], str] | None:
        """A word to the same configuration that leads the target to another state, and that state."""
        if at == 0 and state != self.target.start:
            return (), self.target.states[self.target.start]
        tree = _ProductWalk(self.machine, self.target, self.question if self.question.answers else None)
        deque(tree.steps(one_path_each=True), maxlen=0)
        pairs = tree.pairs
        pair_at = np.full(len(self.first), MISSING)
        pair_at[pairs.at] = np.arange(len(pairs.at))
        symbols, before = np.nonzero(self.machine.tables == at)
        numbers = pair_at[before]
        states = self.target.tables[symbols, pairs.state[numbers]]
        others = np.flatnonzero((numbers >= 0) & (states != state))
        if not len(others):
            return None
        i = others[numbers[others].argmin()]
        return tree.word(pairs, int(numbers[i]), int(symbols[i])), self.target.states[int(states[i])]

    def _new(self, after: _Pairs, *, several: bool) -> Ints:
        """Which of these pairs were not visited before, each once; with `several`, several to a configuration."""
        codes = self._code(after)
        unvisited = np.flatnonzero(self.first[after.at] < 0)
        new = unvisited[np.unique(after.at[unvisited], return_index=True)[1]]
        self.first[after.at[new]] = codes[new]
        if several:
            others = np.flatnonzero(self.first[after.at] != codes).tolist()
            pairs = {(int(after.at[i]), int(codes[i])): i for i in reversed(others)}
            new = np.append(new, [i for pair, i in pairs.items() if pair not in self.others]).astype(int)
            self.others.update(pairs)
            if len(self.others) > MAX_EXTRA_PAIRS:
                raise BudgetExceeded(
                    f"configurations represent more than {MAX_EXTRA_PAIRS:,} further states of the target; compare "
                    "outputs instead of states, or minimize the target."
                )
        return np.sort(new)

    def _code(self, pairs: _Pairs) -> Ints:
        return pairs.state * self.question.tables.shape[1] + pairs.asking

    def word(self, pairs: _Pairs, pair: int, last: int) -> tuple[str, ...]:
        """The path to a pair, and a last symbol."""
        word = [last]
        while pair > 0:
            word.append(int(pairs.symbol[pair]))
            pair = int(pairs.parent[pair])
        return tuple(self.target.symbols[symbol] for symbol in reversed(word))
