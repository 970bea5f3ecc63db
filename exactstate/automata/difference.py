"""Compare two machines by names: the symbols they share, a shortest word on which they differ, and every difference.

States are aligned by the words that reach them: a state of the first machine belongs to the state of the second that
the same shortest word reaches, over the symbols that both read. Order and numbering of states, symbols and outputs do
not matter; a Moore and a Mealy machine can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactstate._text import one_line
from exactstate.automata.equivalence import distinguishing_word
from exactstate.automata.machine import Mealy, Moore, format_word
from exactstate.errors import InvalidMachine


@dataclass(frozen=True)
class TransitionDifference:
    """A transition on which aligned states differ: in its output, its target, or both."""

    state: str
    """In the first machine."""
    other_state: str
    """The one aligned with it in the second."""
    symbol: str
    first: tuple[str, str]
    """(output, target) in the first machine."""
    second: tuple[str, str]

    def explain(self) -> str:
        state = one_line(self.state if self.state == self.other_state else f"{self.state} ~ {self.other_state}")
        (one, to), (other, other_to) = ((output, one_line(target)) for output, target in (self.first, self.second))
        return f"{state} on {self.symbol!r}: {one!r} to {to} in the first, {other!r} to {other_to} in the second"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How two machines differ; true if they do not, over the symbols that both read."""

    first: Mealy
    second: Mealy
    symbols: tuple[str, ...]
    """Read by both."""
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    word: tuple[str, ...] | None
    """A shortest word on which outputs differ; None if there is none."""
    outputs: tuple[tuple[str, ...], tuple[str, ...]]
    """Of both machines on it."""
    aligned: dict[int, int]
    """States of the first machine to states of the second."""
    transitions: tuple[TransitionDifference, ...]
    unmatched: tuple[tuple[str, ...], tuple[str, ...]]
    """States of the first and of the second that belong to none of the other."""

    def __bool__(self) -> bool:
        return self.word is None

    def explain(self, *, most: int = 20) -> str:
        """What differs, in lines."""
        lines = []
        for which, names in (("first", self.only_first), ("second", self.only_second)):
            if names:
                lines.append(f"only the {which} machine reads {', '.join(map(repr, names))}; not compared.")
        if self.word is None:
            smaller = min(self.first.n_states, self.second.n_states)
            note = "" if self.first.n_states == self.second.n_states == smaller else (
                f" ({self.first.n_states} and {self.second.n_states} states: one is not minimal)"
            )  # fmt: skip
            return "\n".join(
                [*lines, f"equivalent: the same outputs on every word of {len(self.symbols)} symbols{note}."]
            )
        one, other = (part[-1] if part else "nothing" for part in self.outputs)
        lines.append(
            f"different: after {format_word(self.word)} the first machine outputs {one!r}, the second {other!r}."
        )
        lines += [f"  {found.explain()}" for found in self.transitions[:most]]
        if len(self.transitions) > most:
            lines.append(f"  and {len(self.transitions) - most} more transitions")
        for which, names in zip(("first", "second"), self.unmatched, strict=True):
            if names:
                shown = ", ".join(map(one_line, names[:8])) + (", ..." if len(names) > 8 else "")
                lines.append(f"  only in the {which}: {len(names)} states ({shown})")
        return "\n".join(lines)


def difference(first: Moore | Mealy, second: Moore | Mealy) -> Difference:
    """Compare two machines by names, over the symbols that both read.

    >>> from exactstate.automata import tomita
    >>> print(difference(tomita(4), tomita(4)).explain())
    equivalent: the same outputs on every word of 2 symbols.
    """
    one, other = first.to_mealy(), second.to_mealy()
    known = set(other.symbols)
    common = tuple(name for name in one.symbols if name in known)
    if not common:
        raise InvalidMachine(
            f"the machines have no symbol in common: {', '.join(map(one_line, one.symbols[:4]))} and "
            f"{', '.join(map(one_line, other.symbols[:4]))}."
        )
    a, b = _restricted(one, common), _restricted(other, common)
    word = distinguishing_word(a, b)
    outputs = tuple(
        () if word is None else tuple(m.outputs[o] for o in m.output_ids(list(word)).tolist()) for m in (a, b)
    )
    aligned = _align(a, b)
    return Difference(
        first=a, second=b, symbols=common, only_first=_without(one.symbols, common),
        only_second=_without(other.symbols, common), word=word, outputs=(outputs[0], outputs[1]), aligned=aligned,
        transitions=tuple(_transitions(a, b, aligned)), unmatched=_unmatched(a, b, aligned),
    )  # fmt: skip


def _without(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    known = set(others)
    return tuple(name for name in names if name not in known)


def _restricted(machine: Mealy, symbols: tuple[str, ...]) -> Mealy:
    """The machine with these symbols only, in this order."""
    number = {name: a for a, name in enumerate(machine.symbols)}
    rows = [number[name] for name in symbols]
    return Mealy(
        symbols=symbols, tables=machine.tables[rows], states=machine.states, start=machine.start,
        outputs=machine.outputs, readout=machine.readout[rows],
    )  # fmt: skip


def _align(first: Mealy, second: Mealy) -> dict[int, int]:
    """States that the same words reach first, one to one."""
    aligned, taken = {first.start: second.start}, {second.start}
    queue = [(first.start, second.start)]
    for p, q in queue:
        for a in range(first.n_symbols):
            to, other = int(first.tables[a, p]), int(second.tables[a, q])
            if to not in aligned and other not in taken:
                aligned[to] = other
                taken.add(other)
                queue.append((to, other))
    return aligned


def _transitions(first: Mealy, second: Mealy, aligned: dict[int, int]) -> list[TransitionDifference]:
    found = []
    for p, q in aligned.items():
        for a, symbol in enumerate(first.symbols):
            to, other = int(first.tables[a, p]), int(second.tables[a, q])
            one = (first.outputs[int(first.readout[a, p])], first.states[to])
            two = (second.outputs[int(second.readout[a, q])], second.states[other])
            if one[0] != two[0] or aligned.get(to) != other:
                found.append(TransitionDifference(first.states[p], second.states[q], symbol, one, two))
    return found


def _unmatched(first: Mealy, second: Mealy, aligned: dict[int, int]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from exactstate.automata.minimize import reachable

    of_first, of_second = (np.asarray(reachable(m.tables, m.start)).tolist() for m in (first, second))
    taken = set(aligned.values())
    return (
        tuple(first.states[q] for q in of_first if q not in aligned),
        tuple(second.states[q] for q in of_second if q not in taken),
    )
