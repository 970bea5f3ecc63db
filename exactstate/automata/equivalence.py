"""Equivalence of machines: a shortest word that distinguishes them, or the proof that there is none.

Hopcroft and Karp, "A linear algorithm for testing equivalence of finite automata", 1971: search the pairs of states
that the same word reaches, breadth-first, and skip a pair whose equality follows by transitivity from pairs already
visited. The word is still a shortest one: a word that distinguishes a skipped pair also distinguishes one of the pairs
that imply it, and those were visited no later. Near-linear in the number of states.
"""

from __future__ import annotations

import numpy as np

from exactstate._types import Ints
from exactstate.automata.congruence import root
from exactstate.automata.machine import Mealy, Moore
from exactstate.errors import InvalidMachine


def distinguishing_word(first: Moore | Mealy, second: Moore | Mealy) -> tuple[str, ...] | None:
    """A shortest word on which the outputs of the machines differ, or None if there is none.

    Symbols and outputs are compared by name, whatever their order. For Moore machines the empty word () distinguishes
    start states with different outputs; for Mealy machines the outputs differ at the last symbol.

    >>> from exactstate.automata import tomita
    >>> distinguishing_word(tomita(4), tomita(7))
    ('0', '0', '0')
    """
    tables, readout = aligned(first, second)
    moore = isinstance(first, Moore)
    n = first.n_states
    successors, outputs = tables.T.tolist(), readout.T.tolist()
    start = (first.start, n + second.start)
    if moore and outputs[start[0]] != outputs[start[1]]:
        return ()

    parent = list(range(len(successors)))
    visited: list[tuple[int, int, int, int]] = []  # state, state, index of the previous pair, symbol from there
    queue = [(*start, -1, -1)]
    for p, q, before, symbol in queue:
        p_root, q_root = root(parent, p), root(parent, q)
        if p_root == q_root:
            continue
        parent[p_root] = q_root
        place = len(visited)
        visited.append((p, q, before, symbol))
        if not moore and outputs[p] != outputs[q]:
            differs = next(a for a, output in enumerate(outputs[p]) if output != outputs[q][a])
            return _word_to(visited, place, differs, first.symbols)
        for a, (to_p, to_q) in enumerate(zip(successors[p], successors[q], strict=True)):
            if moore and outputs[to_p] != outputs[to_q]:
                return _word_to(visited, place, a, first.symbols)
            queue.append((to_p, to_q, place, a))
    return None


def aligned(first: Moore | Mealy, second: Moore | Mealy) -> tuple[Ints, Ints]:
    """(tables, read-out) of both machines side by side: the second's states after the first's, names matched."""
    for machine in (first, second):
        if not isinstance(machine, Moore | Mealy):
            raise InvalidMachine(
                f"only machines with outputs can be compared; got {machine!r}. Moore.of(machine) adds outputs."
            )
    if type(first) is not type(second):
        raise InvalidMachine(
            f"two Moore or two Mealy machines can be compared; got {type(first).__name__} and {type(second).__name__}. "
            "Use to_mealy() on the Moore machine."
        )
    order = symbol_order(first.symbols, second.symbols)
    number = {name: number for number, name in enumerate(first.outputs)}
    renamed = np.array([number.setdefault(name, len(number)) for name in second.outputs])
    converted = renamed[second.readout if isinstance(second, Moore) else second.readout[order]]
    tables = np.concatenate([first.tables.astype(np.int64), second.tables[order].astype(np.int64) + first.n_states], 1)
    return tables, np.concatenate([first.readout.astype(np.int64), converted], axis=-1)


def symbol_order(first: tuple[str, ...], second: tuple[str, ...]) -> list[int]:
    """The position of each of the first symbols among the second; both must be the same set."""
    if set(first) != set(second):
        only_first, only_second = (sorted(set(a) - set(b)) for a, b in ((first, second), (second, first)))
        which = [f"only the {which} reads {symbols[0]!r}" for which, symbols in
                 (("first", only_first), ("second", only_second)) if symbols]  # fmt: skip
        raise InvalidMachine(f"machines are compared over the same symbols; {' and '.join(which)}.")
    place = {name: number for number, name in enumerate(second)}
    return [place[name] for name in first]


def _word_to(
    visited: list[tuple[int, int, int, int]], place: int, last: int, symbols: tuple[str, ...]
) -> tuple[str, ...]:
    word = [last]
    while place >= 0:
        _, _, place, symbol = visited[place]
        word.append(symbol)
    return tuple(symbols[a] for a in reversed(word[:-1]))
