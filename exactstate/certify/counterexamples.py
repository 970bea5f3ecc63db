"""Many counterexamples at once: the words on which a machine and its target differ, not only a shortest one.

The product walk of `certify` goes on past a wrong output. Each pair of a configuration and a state of the target that
words reach together is visited once, so each symbol that is answered wrongly there gives one word, a shortest to it.
"""

from __future__ import annotations

import numpy as np

from exactstate._types import MISSING, Ints
from exactstate.automata import Mealy, Moore
from exactstate.certify.target import LabelKind, Target, in_order, target_labels
from exactstate.extract.result import Extracted

MAX_PAIRS = 100_000
"""Pairs after which the walk ends; what it found until then is returned."""


def counterexamples(
    machine: Extracted | Mealy, target: Moore | Mealy, *, labels: LabelKind = "states", most: int = 256
) -> list[tuple[str, ...]]:
    """Words after which the machine, whose state 0 is the initial one, outputs something else than the target,
    shortest first.

    Of more than `most`, the first half are the shortest, and the others are spread evenly over the rest.
    """
    goal = in_order(Target.of(target, labels), machine.symbols)
    of_label = target_labels(machine.outputs if isinstance(machine, Mealy) else machine.label_names, goal)
    A, n = goal.tables.shape
    at, state, count = np.array([0]), np.array([goal.start]), 0
    seen = np.zeros(machine.tables.shape[1] * n, bool)
    seen[goal.start] = True
    none = np.array([MISSING])
    parents, symbols = [none], [none]
    wrong_pairs: list[Ints] = []
    wrong_symbols: list[Ints] = []
    while len(at) and count < MAX_PAIRS:
        which, symbol = np.divmod(np.arange(len(at) * A), A)
        permitted = machine.tables[symbol, at[which]] >= 0
        which, symbol = which[permitted], symbol[permitted]
        wrong = of_label[machine.readout[symbol, at[which]]] != goal.wanted[symbol, state[which]]
        wrong_pairs.append(count + which[wrong])
        wrong_symbols.append(symbol[wrong])
        after, state_after = machine.tables[symbol, at[which]], goal.tables[symbol, state[which]].astype(np.int64)
        code = after.astype(np.int64) * n + state_after
        first = np.sort(np.unique(code, return_index=True)[1])
        new = first[~seen[code[first]]]
        seen[code[new]] = True
        parents.append(count + which[new])
        symbols.append(symbol[new])
        count += len(at)
        at, state = after[new], state_after[new]
    pairs, last = np.concatenate(wrong_pairs), np.concatenate(wrong_symbols)
    if len(pairs) > most:
        spread = np.linspace(most // 2, len(pairs) - 1, most - most // 2).astype(np.int64)
        chosen = np.concatenate([np.arange(most // 2), spread])
        pairs, last = pairs[chosen], last[chosen]
    parent, read = np.concatenate(parents).tolist(), np.concatenate(symbols).tolist()
    words = []
    for pair, symbol in zip(pairs.tolist(), last.tolist(), strict=True):
        word = [symbol]
        while pair > 0:
            word.append(read[pair])
            pair = parent[pair]
        words.append(tuple(goal.symbols[a] for a in reversed(word)))
    return words
