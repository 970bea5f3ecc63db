"""`exactstate.learn`: a machine from a log of traces, by state merging. No network.

learn("log.jsonl").save("machine.dot")
learn([(["open", "close"], ["ok", "ok"]), ...]).outputs(["open", "open"])
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from exactstate._types import MISSING, Ints
from exactstate.automata import Mealy, Moore
from exactstate.automata.io.common import DFA_OUTPUTS, fresh
from exactstate.automata.minimize import reachable
from exactstate.errors import InvalidConfig, InvalidInput, NotLearned, unknown
from exactstate.learning.logs import LABELS
from exactstate.learning.prefix_tree import PrefixTree
from exactstate.learning.refine import refine
from exactstate.learning.state_merging import Kind, MergedStates, Order, merge_states
from exactstate.learning.trace_tree import TraceTree, read_tree

if TYPE_CHECKING:
    from exactstate.runtime import Machine

Missing = Literal["sink", "loop", "refuse"]
KINDS: tuple[Kind, ...] = ("mealy", "moore", "dfa")
SMALL_TREE = 1 << 19
"""Nodes up to which several orders of merging are tried."""
MAX_REFUSED, REFUSED_NODES = 24, 1 << 20
"""How many of the first merges of a DFA are refused, one at a time; fewer where that many times the nodes are more."""
ASSUMED_NOISE = 1e-3
"""The share of wrong outputs that one of the tries on a clean log assumes; what it finds must agree with every line."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LearnedMachine:
    """A machine from a log."""

    machine: Moore | Mealy
    kind: Kind
    traces: int
    length: int
    """Symbols of all traces."""
    nodes: int
    """Of the prefix tree."""
    states: int
    """Without the one that unseen transitions lead to."""
    unseen: tuple[tuple[str, str], ...]
    """(state, symbol) of transitions that no trace took."""
    missing: Missing
    noise: float
    """The share of wrong outputs that was assumed."""
    observed: int
    """Outputs in the log."""
    disagreeing: int
    """Outputs in the log that the machine does not give; 0 without noise."""
    order: str
    """How states were merged."""

    @property
    def runtime(self) -> Machine:
        """The machine made to be run, with its origin."""
        from exactstate.runtime import Machine

        about = {
            "learned": "state merging", "kind": self.kind, "traces": self.traces, "symbols": self.length,
            "unseen": len(self.unseen), "missing": self.missing, "noise": self.noise, "disagreeing": self.disagreeing,
        }  # fmt: skip
        return Machine.of(self.machine, about=about)

    def outputs(self, word: Any) -> list[str]:
        """The name of the output at every symbol of a word."""
        return self.runtime.outputs(word)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the machine: .dot, .json, .exactstate."""
        self.runtime.save(path)

    def explain(self) -> str:
        """What was learned, in sentences."""
        n, A = self.states, self.machine.n_symbols
        sentence = (
            f"{self.kind}: {n} states, {A} symbols, from {self.traces:,} traces with {self.length:,} symbols "
            f"({self.nodes:,} prefixes)"
        )
        if self.noise:
            share = self.disagreeing / max(self.observed, 1)
            sentence += f"; {self.disagreeing:,} of {self.observed:,} outputs disagree ({share:.2%})"
        if self.unseen:
            state, symbol = self.unseen[0]
            to = "lead to a sink" if self.missing == "sink" else "are loops"
            sentence += f"; {len(self.unseen)} of {n * A} transitions were never seen and {to}"
            sentence += f" (the first: {symbol!r} in {state})"
        return f"{sentence}."

    def __repr__(self) -> str:
        return f"LearnedMachine({self.explain()})"


def learn(
    traces: str | os.PathLike[str] | Iterable[Any] | TraceTree, *, kind: Kind | None = None, missing: Missing = "sink",
    noise: float | Literal["auto"] = 0.0, order: Order | None = None, format: str | None = None,
    separator: str | None = None, max_states: int | None = None, watch: Callable[[int, int], None] | None = None,
) -> LearnedMachine:  # fmt: skip
    """The smallest machine that state merging finds for a log of traces.

    - `traces`: a log file (see `exactstate.learning.logs`), or (inputs, outputs) pairs, or a `TraceTree`.
    - `kind`: mealy, moore or dfa; by default a Mealy machine, a DFA where traces have only a label at their end.
    - `missing`: transitions that no trace took lead to a `sink`, are a `loop`, both with the output `missing`; or
      `refuse`.
    - `noise`: the share of wrong outputs, or "auto" to estimate it from contradictions; 0 refuses contradictions.
    - `order`: of merging: visits, shortlex, evidence or margin; by default one after another until two give the
      same machine, and the smallest one counts.

    >>> log = [("aba", ["on", "on", "off"]), ("bb", ["off", "off"]), ("aa", ["on", "off"])]
    >>> toggle = learn(log)
    >>> toggle.machine.n_states, toggle.outputs(["a", "a", "a"])
    (2, ['on', 'off', 'on'])
    """
    if missing not in ("sink", "loop", "refuse"):
        raise unknown("way to complete a machine", missing, ("sink", "loop", "refuse"))
    if kind is not None and kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    log = (
        traces if isinstance(traces, TraceTree) else read_tree(traces, format=format, separator=separator, watch=watch)
    )
    kind = kind or ("mealy" if log.everywhere or not set(log.outputs) <= set(LABELS) else "dfa")
    if kind == "dfa":
        log = _with_labels(log)
    if not log.symbols or not log.observed:
        raise InvalidInput("every trace is empty or without outputs; there is nothing to learn.")
    arrays = log.tree.arrays
    if kind == "mealy" and not (arrays.node > 0).any():
        raise InvalidInput("no input of the log has an output; there is nothing to learn.")
    if noise == "auto":
        noise = estimate_noise(log)
    if noise == 0:
        log.refuse_contradictions("; give --noise for a log with wrong outputs.")
    merged, used = _smallest(log, kind, noise, order, max_states)
    if merged is None:
        raise NotLearned(
            f"not learned: merging states gives more than {max_states} states; allow more, or give --noise."
        )
    return _complete(log, merged, kind, missing, noise, used)


def estimate_noise(log: TraceTree) -> float:
    """The share of outputs that differ from the most frequent one, at prefixes with at least four outputs.

    0 without contradictions, 0.05 where no prefix is that frequent.
    """
    arrays = log.tree.arrays
    total, most = np.zeros(len(arrays.parent), np.int64), np.zeros(len(arrays.parent), np.int64)
    np.add.at(total, arrays.node, arrays.count)
    np.maximum.at(most, arrays.node, arrays.count)
    often = total >= 4
    if not len(arrays.contradictions):
        return 0.0
    if not often.any():
        return 0.05
    return float(np.clip((total - most)[often].sum() / total[often].sum(), 1e-3, 0.4))


def _smallest(
    log: TraceTree, kind: Kind, noise: float, order: Order | None, max_states: int | None
) -> tuple[MergedStates | None, str]:
    """The machine with the fewest states that the orders of merging give."""
    tree, arrays = log.tree, log.tree.arrays
    sizes: Any = {"symbols": len(log.symbols), "outputs": len(log.outputs)}
    if noise > 0:
        merged = merge_states(tree, kind=kind, noise=noise, order=order or "visits", max_states=max_states, **sizes)
        return (None if merged is None else refine(arrays, merged, noise=noise, **sizes)), order or "visits"
    first: Order = order or ("evidence" if kind == "dfa" else "visits")
    best, used = merge_states(tree, kind=kind, order=first, max_states=max_states, **sizes), str(first)
    if order is not None or len(tree) > SMALL_TREE:
        return best, used
    smallest = [] if best is None else [(used, best)]
    ways = _ways(kind, len(tree))
    while ways:
        tried, refused = ways.pop(0)
        most = max_states if best is None else best.n_states
        if tried == "noise":
            merged = merge_states(tree, kind=kind, noise=ASSUMED_NOISE, order="visits", max_states=most, **sizes)
            merged = None if merged is None else refine(arrays, merged, noise=ASSUMED_NOISE, **sizes)
            if merged is not None and merged.disagreeing:
                continue
        else:
            merged = merge_states(tree, kind=kind, order=tried, refused=refused, max_states=most, **sizes)
        if merged is None:
            continue
        for earlier, other in smallest:
            if _same(merged, other):
                return other, earlier  # two different ways give the same machine
        if best is not None and merged.n_states < best.n_states:
            smallest = []
        elif tried == "shortlex":  # as many states: they are few, and noise is as fast as evidence then
            ways = [("noise", None), ("evidence", None), ("margin", None)]
        best, used = merged, tried
        smallest.append((used, best))
    return best, used


def _ways(kind: Kind, nodes: int) -> list[tuple[Any, int | None]]:
    """(order, refused merge) of the ways that are tried after the first one."""
    if kind != "dfa":
        return [("shortlex", None), ("evidence", None), ("noise", None), ("margin", None)]
    # where labels are few, one wrong merge among the first ones often spoils all that follow
    tries = min(MAX_REFUSED, REFUSED_NODES // nodes)
    return [("margin", None), *((order, merge) for merge in range(tries) for order in ("margin", "evidence"))]


def _same(one: MergedStates, other: MergedStates) -> bool:
    """Whether two machines differ in the numbers of their states only."""
    if one.n_states != other.n_states:
        return False
    if not np.array_equal(np.sort(one.visits, axis=None), np.sort(other.visits, axis=None)):
        return False
    return all(np.array_equal(a, b) for a, b in zip(_renumbered(one), _renumbered(other), strict=True))


def _with_labels(log: TraceTree) -> TraceTree:
    """The same with outputs reject and accept."""
    strange = [name for name in log.outputs if name.lower() not in LABELS]
    if strange:
        raise InvalidConfig(
            f"a DFA has the labels accept and reject (or 1 and 0, true and false); the log has {strange[0]!r}. "
            "Learn a moore machine."
        )
    number = np.array([DFA_OUTPUTS.index(LABELS[name.lower()]) for name in log.outputs], np.int32)
    arrays = log.tree.arrays
    tree = PrefixTree(max_nodes=log.tree.max_nodes)
    renamed = PrefixTree()
    renamed._arrays = replace(arrays, output=number[arrays.output])
    tree.merge(renamed)
    tree.words = log.tree.words
    return replace(log, tree=tree, outputs={name: i for i, name in enumerate(DFA_OUTPUTS)})


def _complete(
    log: TraceTree, merged: MergedStates, kind: Kind, missing: Missing, noise: float, order: str
) -> LearnedMachine:
    """The whole machine: states numbered breadth-first, unseen transitions as the caller wants them."""
    tables, readout = _renumbered(merged)
    n, symbols, outputs = merged.n_states, list(log.symbols), list(log.outputs)
    states = [f"s{q}" for q in range(n)]
    unseen = [(states[q], symbols[a]) for q, a in np.argwhere(tables.T == MISSING).tolist()]
    silent = np.argwhere(readout == MISSING)
    if unseen and missing == "refuse":
        state, symbol = unseen[0]
        raise InvalidInput(
            f"{len(unseen)} of {tables.size} transitions were never seen, the first {symbol!r} in state {state}; "
            "log more traces, or choose --missing sink or --missing loop."
        )
    if (unseen or len(silent)) and kind != "dfa":
        outputs.append(fresh("missing", outputs))
    filler = 0 if kind == "dfa" else len(outputs) - 1
    readout = np.where(readout == MISSING, filler, readout)
    if unseen and missing == "sink":
        states.append(fresh("sink", states))
        tables = np.pad(np.where(tables == MISSING, n, tables), ((0, 0), (0, 1)), constant_values=n)
        readout = np.pad(readout, ((0, 0),) * (readout.ndim - 1) + ((0, 1),), constant_values=filler)
    else:
        tables = np.where(tables == MISSING, np.arange(n), tables)
    build: type[Moore | Mealy] = Mealy if kind == "mealy" else Moore
    machine = build(
        symbols=tuple(symbols), tables=tables, states=tuple(states), outputs=tuple(outputs), readout=readout
    )
    return LearnedMachine(
        machine=machine, kind=kind, traces=log.tree.words, length=log.length, nodes=len(log.tree), states=n,
        unseen=tuple(unseen), missing=missing, noise=noise, observed=log.observed, disagreeing=merged.disagreeing,
        order=order,
    )  # fmt: skip


def _renumbered(merged: MergedStates) -> tuple[Ints, Ints]:
    """(tables, read-out) with the states in breadth-first order from state 0."""
    order = reachable(merged.tables, 0)
    numbers = np.argsort(order)
    tables = np.where(merged.tables == MISSING, MISSING, numbers[merged.tables])
    return tables[:, order], merged.readout[..., order]
