"""The algebraic properties of a machine: each with a witness, and a sentence that explains it."""

from __future__ import annotations

from dataclasses import dataclass

from exactstate.automata.isomorphism import is_word_problem
from exactstate.automata.machine import Mealy, Moore, Semiautomaton
from exactstate.automata.properties.definite import Definite, definite
from exactstate.automata.properties.monoid import MAX_ELEMENTS, Aperiodic, Group, aperiodic, group, transition_monoid
from exactstate.automata.properties.synchronizing import Synchronizing, synchronizing


@dataclass(frozen=True)
class Properties:
    """The properties of a machine.

    >>> from exactstate.automata import cyclic
    >>> print(Properties.of(cyclic(2)))
    2 states, 2 symbols
    transition monoid of 2 elements, 1 of them idempotent
    a group: every symbol permutes the states
    not definite: '0' keeps '0' and '1' apart, however often it is repeated
    not aperiodic: the powers of '1' are a group of order 2
    not synchronizing: no word merges '0' and '1'
    """

    states: int
    symbols: int
    elements: int | None
    """The size of the transition monoid; None when it exceeds the limit."""
    idempotents: int | None
    """The number of idempotents among them."""
    limit: int
    """The largest number of elements of the transition monoid that were enumerated."""
    group: Group
    definite: Definite
    aperiodic: Aperiodic
    synchronizing: Synchronizing

    @classmethod
    def of(cls, machine: Semiautomaton, *, limit: int = MAX_ELEMENTS) -> Properties:
        """All properties, with no more than `limit` elements of the transition monoid enumerated."""
        permutes = group(machine)
        elements, idempotents = _count(machine, bool(permutes), limit)
        return cls(
            states=machine.n_states, symbols=machine.n_symbols, elements=elements, idempotents=idempotents, limit=limit,
            group=permutes, definite=definite(machine), aperiodic=aperiodic(machine, limit=limit),
            synchronizing=synchronizing(machine),
        )  # fmt: skip

    def sentences(self) -> tuple[str, ...]:
        """Each property as a sentence."""
        if self.elements is None:
            monoid = f"transition monoid not enumerated completely (limit {self.limit} elements)"
        else:
            monoid = f"transition monoid of {self.elements} elements"
            monoid += f", {self.idempotents} of them idempotent" if self.idempotents is not None else ""
        answers = (self.group, self.definite, self.aperiodic, self.synchronizing)
        size = f"{self.states} states, {self.symbols} symbols"
        return (size, monoid, *(answer.explain() for answer in answers))

    def __str__(self) -> str:
        return "\n".join(self.sentences())


def _count(machine: Semiautomaton, permutes: bool, limit: int) -> tuple[int | None, int | None]:
    """(elements of the transition monoid, idempotents among them); None where unknown."""
    start = machine.start if isinstance(machine, Moore | Mealy) else 0
    known = machine.n_states if is_word_problem(machine.tables, start) else None
    if permutes and known is not None:
        return known, 1
    monoid = transition_monoid(machine, limit=limit)
    return (len(monoid), len(monoid.idempotents)) if monoid.complete else (known, None)
