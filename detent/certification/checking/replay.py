"""Run every configuration of a certificate through the tables it gives, and see that all it says is so.

Written for being read, as plainly as possible: dictionaries and loops, one step of the model at a time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detent.certification.checking.form import Refused
from detent.certification.checking.telling import Told

Bools = NDArray[np.bool_]
Final = tuple[int, ...]
"""What a read-out depends on: the input of the top layer, and the indices it has moved to."""


class Replay:
    """The machine that a certificate describes, run step by step."""

    def __init__(self, told: Told) -> None:
        self.told = told
        self.number = {tuple(one): i for i, one in enumerate(told.configurations)}
        A = len(told.symbols)
        self.columns = [[np.zeros((A, d), bool) for d in layer.heads] for layer in told.layers]
        """layer, head: A d, whether this index was moved by this symbol."""
        self.steps = np.zeros(A, bool)
        """A: whether this symbol was read."""
        self.used_inputs = [set[int]() for _ in told.layers]
        self.used_windows = [set[int]() for _ in told.layers]
        self.used_entries = [[np.zeros((len(layer.windows), d), bool) for d in layer.heads] for layer in told.layers]
        self.label_of: dict[Final, int] = {}
        self.moves: list[list[tuple[int, int, Final]]] = []
        """For every configuration and symbol that may follow: the symbol, the configuration after it, the read-out."""

    def run(self) -> None:
        """Follow every symbol from every configuration; refuse what does not hold."""
        told = self.told
        home = [k for layer in told.layers for k in layer.start] + [-1] * (told.reach - 1) + [told.place]
        if told.configurations[0] != home:
            raise Refused(f"configurations[0] is {told.configurations[0]}; the heads begin at {home}.")
        for number in range(len(told.configurations)):
            self._follow(number)
        all_reached([[after for _, after, _ in moves] for moves in self.moves], "configurations")
        self._all_used()

    def _follow(self, number: int) -> None:
        """One step by every symbol that may follow."""
        told, configuration = self.told, self.told.configurations[number]
        moves: list[tuple[int, int, Final]] = []
        place = configuration[-1]
        for symbol, rule in enumerate(told.rules):
            if told.refused[rule[place]]:
                continue
            after, final = self._step(number, configuration, symbol)
            reached = self.number.get((*after, rule[place]))
            if reached is None:
                raise Refused(
                    f"{self._way(number, symbol)} to {[*after, rule[place]]}, which is not among configurations."
                )
            said = told.readout[number][len(moves)]
            if self.label_of.setdefault(final, said) != said:
                raise Refused(f"readout[{number}][{len(moves)}]: at the same input and indices something else is said.")
            self.steps[symbol] = True
            moves.append((symbol, reached, final))
        self.moves.append(moves)

    def _step(self, number: int, configuration: list[int], symbol: int) -> tuple[tuple[int, ...], Final]:
        """(the configuration after the symbol, without the place; what is read out)."""
        told = self.told
        at, newest = 0, 0
        after: list[int] = []
        final: tuple[int, ...] = ()
        remembered = configuration[-told.reach : -1]
        for depth, layer in enumerate(told.layers):
            key = (symbol,) if not depth else (newest, *after[-len(told.layers[depth - 1].heads) :])
            found = layer.number_of_input.get(key)
            if found is None:
                raise Refused(f"{self._way(number, symbol)} to the input {key}, not among layers[{depth}].inputs.")
            newest = found
            self.used_inputs[depth].add(newest)
            window = (*(self._below(last, depth) for last in remembered), newest)
            where = layer.number_of_window.get(window)
            if where is None:
                raise Refused(f"{self._way(number, symbol)} to the window {window}, not among layers[{depth}].windows.")
            self.used_windows[depth].add(where)
            moved = []
            for head, table in enumerate(layer.tables):
                k = configuration[at]
                if table[where][k] < 0:
                    raise Refused(f"layers[{depth}].tables[{head}][{where}][{k}] is -1, but it is used.")
                self.used_entries[depth][head][where, k] = True
                self.columns[depth][head][symbol, k] = True
                moved.append(table[where][k])
                at += 1
            after += moved
            final = (newest, *moved)
        return (*after, *[*remembered, newest][1:]), final

    def _below(self, last: int, depth: int) -> int:
        """The input of a layer that belongs to an input of the top layer."""
        for layer in self.told.layers[:depth:-1]:
            last = layer.inputs[last][0] if last >= 0 else -1
        return last

    def _all_used(self) -> None:
        """Nothing is told of a layer that no step needs."""
        for depth, layer in enumerate(self.told.layers):
            where = f"layers[{depth}]"
            for kind, used, all_of in (
                ("inputs", self.used_inputs[depth], layer.inputs if depth else []),  # of the first: every symbol
                ("windows", self.used_windows[depth], layer.windows),
            ):
                if len(used) < len(all_of):
                    unused = next(i for i in range(len(all_of)) if i not in used)
                    raise Refused(f"{where}.{kind}[{unused}] is never used.")
            for head, (table, used_entries) in enumerate(zip(layer.tables, self.used_entries[depth], strict=True)):
                for w, k in np.argwhere(~used_entries & (np.array(table) >= 0)).tolist():
                    raise Refused(f"{where}.tables[{head}][{w}][{k}] is never used; wanted -1.")

    def _way(self, number: int, symbol: int) -> str:
        return f"configurations[{number}] and the symbol {self.told.symbols[symbol]!r} lead"


def all_reached(leads: list[list[int]], where: str) -> None:
    """Nothing is listed that no word leads to."""
    seen, queue = {0}, [0]
    for one in queue:
        fresh = [then for then in leads[one] if then not in seen]
        seen.update(fresh)
        queue += dict.fromkeys(fresh)
    if len(seen) < len(leads):
        raise Refused(f"{where}[{next(i for i in range(len(leads)) if i not in seen)}] is never reached.")
