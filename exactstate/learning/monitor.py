"""A monitor of calls: a machine learned from traces, with a verdict and a score at every call.

    n  states     A  symbols

States are merged by `exactstate.learn`. At each prefix a call that was made has the label of its trace as output; a
call that never came there, though the prefix was seen often, has the output `absent`, as many times as the call would
have come if calls did not depend on the past. So states differ in what may follow, and in how traces end.

The score of a call in a state is the share of bad traces among the training traces that made it there, with half a
trace of each kind added: 1/2 where no trace made it, near 0 where many good ones did. A call is allowed if some
training trace made it there and its score is below the threshold, which at most the wanted share of good held-out
traces reach.
"""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from exactstate._types import MISSING, Ints
from exactstate.automata import Mealy, Moore, format_word, minimize
from exactstate.automata.io.common import DFA_OUTPUTS
from exactstate.automata.policy import END, OTHER, Policy, restricted
from exactstate.errors import BrokenFile, InvalidConfig, InvalidInput
from exactstate.learning.calls import Call, CallTrace, as_call
from exactstate.learning.events import Events, Session
from exactstate.learning.learn import learn
from exactstate.learning.logs import Trace
from exactstate.learning.prefix_tree import PrefixTree, TreeArrays
from exactstate.learning.trace_tree import TraceTree
from exactstate.runtime import Machine, load

ALLOWED, UNEXPECTED, FORBIDDEN = "allowed", "unexpected", "forbidden"
GOOD = frozenset({"ok", "success", "successful", "passed", "pass", "good", "benign", "normal", "true", "1"})
NOISES = (0.003, 0.01, 0.03, 0.1, 0.2)
"""Shares of outputs that may disagree within a state; the one that foretells the held-out traces best is kept."""
FORMAT = "exactstate-monitor"


def is_bad(label: str | None) -> bool:
    """Whether a trace with this label ended badly; without a label it is taken for a good one."""
    return label is not None and label.strip().lower() not in GOOD


class Verdict(NamedTuple):
    """What a monitor says of a call."""

    verdict: str
    """allowed, unexpected or forbidden."""
    score: float
    symbol: str
    state: int
    """Of the machine, before the call."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Monitor:
    """A machine with a verdict and a score at every call; see `Watch` for one trace at a time."""

    machine: Machine
    """Mealy; its outputs are a verdict and a score, such as 'unexpected:0.5'."""
    events: Events
    threshold: float
    counts: Ints
    """2 A n: how many good and bad training traces made the call in the state; per state of `machine`."""
    traces: tuple[int, int]
    """How many good and bad ones it was learned from."""
    policies: tuple[Policy, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def automaton(self) -> Mealy:
        return self.machine.automaton.to_mealy()

    @cached_property
    def verdicts(self) -> list[tuple[str, float]]:
        """The verdict and the score that every output of the machine means."""
        parts = [name.split(":") for name in self.machine.output_names]
        return [(verdict, float(score)) for verdict, score in parts]

    def watch(self) -> Watch:
        """One trace, from its beginning."""
        return Watch(self)

    def scores(self, traces: Iterable[CallTrace]) -> list[float]:
        """The largest score of each trace, its end included."""
        found = []
        for trace in traces:
            watch = self.watch()
            found.append(max([watch(call).score for call in trace.calls] + [watch.end().score]))
        return found

    def allows(self, trace: CallTrace) -> bool:
        """Whether every call of the trace is allowed, and its end."""
        watch = self.watch()
        return all([watch(call).verdict == ALLOWED for call in trace.calls] + [watch.end().verdict == ALLOWED])

    def expected(self, state: int, most: int = 5) -> list[tuple[str, float]]:
        """The likeliest next symbols in a state, with their share in the good training traces."""
        good = self.counts[0, :, state]
        order = np.argsort(-good, kind="stable")[:most]
        return [(self.machine.symbols[a], float(good[a] / good.sum())) for a in order if good[a]]

    def state_score(self, state: int) -> float:
        """How likely a trace in this state ends badly: the share of bad ones, with half a trace of each kind."""
        good, bad = self.counts[:, :, state].sum(axis=1).tolist()
        return (bad + 0.5) / (good + bad + 1)

    def reason(self, found: Verdict) -> str:
        """Why: the shortest trace to the state, what the policies say, and what was expected there."""
        path = format_word(self.paths[found.state])
        refusing = [p.text for p in self.policies if self._refuses(p, self.paths[found.state], found.symbol)]
        if found.verdict == FORBIDDEN and refusing:
            return f"after {path}, {found.symbol!r} breaks the policy {refusing[0]!r}"
        expected = ", ".join(f"{name} {share:.0%}" for name, share in self.expected(found.state, 3)) or "nothing"
        if found.symbol == OTHER:
            return f"no training trace made such a call; after {path}, expected: {expected}"
        number = self.machine.symbols.index(found.symbol)
        good, bad = self.counts[:, number, found.state].tolist()
        return f"after {path}, {found.symbol!r} came in {good} good and {bad} bad training traces; expected: {expected}"

    @cached_property
    def paths(self) -> list[tuple[str, ...]]:
        """A shortest trace to every state."""
        machine = self.automaton
        words: dict[int, tuple[str, ...]] = {machine.start: ()}
        order = [machine.start]
        for q in order:
            for a, symbol in enumerate(machine.symbols):
                to = int(machine.tables[a, q])
                if to not in words and symbol != END:
                    words[to] = (*words[q], symbol)
                    order.append(to)
        return [words.get(q, ()) for q in range(machine.n_states)]

    def _refuses(self, policy: Policy, path: Sequence[str], symbol: str) -> bool:
        machine = policy.machine(self.machine.symbols)
        return machine.outputs[int(machine.output_ids([*path, symbol])[-1])] == "refused"

    def language(self, *, whole: bool = True) -> Moore:
        """The DFA of the traces on which every verdict is `allowed`; with `whole`, those that may end there."""
        machine, sink = self.automaton, self.automaton.n_states
        allowed = np.array([verdict == ALLOWED for verdict, _ in self.verdicts])[machine.readout]
        rows = [a for a, name in enumerate(machine.symbols) if name != END]
        tables = np.where(allowed[rows], machine.tables[rows].astype(np.int64), sink)
        ends = allowed[machine.symbols.index(END)] if whole else np.ones(machine.n_states, bool)
        dfa = Moore(
            symbols=tuple(machine.symbols[a] for a in rows), start=machine.start, outputs=DFA_OUTPUTS,
            tables=np.pad(tables, ((0, 0), (0, 1)), constant_values=sink),
            readout=np.append(ends, False).astype(np.int64),
        )  # fmt: skip
        return minimize(dfa)

    def with_policies(self, policies: Sequence[Policy]) -> Monitor:
        """The monitor that forbids, besides, what these policies refuse."""
        machine, before = restricted(self.automaton, policies, f"{FORBIDDEN}:1")
        return replace(
            self, machine=Machine.of(machine), counts=self.counts[:, :, before], policies=(*self.policies, *policies)
        )

    def violation(self, policy: Policy) -> tuple[str, ...] | None:
        """A shortest trace that the monitor allows and the policy refuses; None is the proof that there is none.

        The monitor and the monitor with the policy are compared on all traces of all lengths.
        """
        from exactstate.automata import distinguishing_word

        whole = policy.kind == "every"
        restrained = self.with_policies([policy])
        word = distinguishing_word(self.language(whole=whole), restrained.language(whole=whole))
        return None if word is None else (*word, END) if whole else word

    def to_machine(self) -> Machine:
        """The machine that files and programs hold; a program reads a name that it does not know as OTHER."""
        about = {
            "format": FORMAT, "events": self.events.to_toml(), "threshold": self.threshold,
            "policies": [policy.text for policy in self.policies], "counts": self.counts.tolist(),
            "traces": list(self.traces), "notes": list(self.notes),
        }  # fmt: skip
        return replace(self.machine, about={"monitor": about})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the monitor as a machine file: .json or .exactstate; other verbs read it as a machine."""
        self.to_machine().save(path)

    @classmethod
    def of(cls, machine: Machine, source: object = "the machine") -> Monitor:
        """The monitor that a machine file holds."""
        about = machine.about.get("monitor")
        try:
            if not isinstance(about, Mapping) or about["format"] != FORMAT:
                raise InvalidConfig("it is a machine, and no monitor; `exactstate monitor TRACES -o FILE` makes one")
            import tomllib

            counts = np.array(about["counts"], np.int64)
            if counts.shape != (2, machine.n_symbols, machine.n_states) or END not in machine.symbols:
                raise InvalidConfig("its counts are not those of its machine")
            monitor = cls(
                machine=machine, events=Events.of(tomllib.loads(about["events"])), threshold=float(about["threshold"]),
                counts=counts, traces=(int(about["traces"][0]), int(about["traces"][1])),
                policies=tuple(map(Policy.of, about["policies"])), notes=tuple(about["notes"]),
            )  # fmt: skip
            if {verdict for verdict, _ in monitor.verdicts} - {ALLOWED, UNEXPECTED, FORBIDDEN}:
                raise InvalidConfig("its outputs are not verdicts")
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise BrokenFile(source, f"{str(error).rstrip('.')}.") from None
        return monitor

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Monitor:
        return cls.of(load(path), path)

    def explain(self) -> str:
        good, bad = self.traces
        sentence = (
            f"monitor: {self.machine.n_states} states, {self.machine.n_symbols} symbols, from {good:,} good and "
            f"{bad:,} bad traces; calls with a score of {self.threshold:.3g} or more are unexpected"
        )
        return ". ".join([sentence, *self.notes]) + "."


class Watch:
    """One trace as it comes: `watch(call)` is its verdict.

    An unexpected call that training traces made is followed; one that none made, or that a policy refuses, is reported
    and leaves the state as it is.
    """

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor
        self.session = Session(monitor.events)
        self.state = monitor.machine.start
        machine = monitor.automaton
        self._numbers = {name: a for a, name in enumerate(machine.symbols)}
        self._other = self._numbers[OTHER]
        self._next, self._outputs, self._verdicts = _lists(monitor)

    def __call__(self, call: Call | str | Mapping[str, Any]) -> Verdict:
        """The verdict on a call; where a wait comes with it, the one with the larger score."""
        worst: Verdict | None = None
        try:
            symbols = self.session.symbols(call if type(call) is Call else as_call(call))
        except ValueError as error:
            raise InvalidInput(f"{error}.") from None
        for symbol in symbols:
            found = self._read(symbol)
            if worst is None or found.score > worst.score:
                worst = found
        return worst or Verdict(ALLOWED, 0.0, "", self.state)

    def end(self) -> Verdict:
        """The verdict on ending the trace here."""
        return self._read(END)

    def _read(self, symbol: str) -> Verdict:
        a, q = self._numbers.get(symbol, self._other), self.state
        self.state = self._next[a][q]
        verdict, score = self._verdicts[self._outputs[a][q]]
        return Verdict(verdict, score, symbol if a != self._other else OTHER, q)


def _lists(monitor: Monitor) -> tuple[list[list[int]], list[list[int]], list[tuple[str, float]]]:
    """Tables as lists, which single lookups are faster in; made once."""
    kept = monitor.__dict__.get("_lists")
    if kept is None:
        machine = monitor.automaton
        kept = (machine.tables.tolist(), machine.readout.tolist(), monitor.verdicts)
        object.__setattr__(monitor, "_lists", kept)
    return kept


def learn_monitor(
    traces: Sequence[CallTrace], events: Events | None = None, *, policies: Sequence[Policy] = (),
    false_alarms: float = 0.01, held_out: float = 0.25, noise: float | None = None, max_states: int | None = None,
    machine: Mealy | None = None, seed: int = 42,
) -> Monitor:  # fmt: skip
    """A monitor from traces, with or without labels.

    - `events`: what of a call is read; by default its name.
    - `false_alarms`: the share of good traces that may be reported, on those that are held out.
    - `held_out`: the share of traces that the machine is not learned from.
    - `noise`: the share of outputs that may disagree within a state; larger merges more. By default the one of several
      whose machine foretells the held-out traces best.
    - `machine`: count and judge with the states of this machine, over the symbols and `<end>`, instead of merging.

    >>> calls = [["login", "pay"], ["login", "read", "pay"], ["login", "read", "read", "pay"]] * 40
    >>> monitor = learn_monitor([CallTrace([Call(name) for name in names]) for names in calls])
    >>> watch = monitor.watch()
    >>> watch("login").verdict, watch("pay").verdict, monitor.watch()("pay").verdict
    ('allowed', 'allowed', 'unexpected')
    """
    if not 0 < false_alarms < 1 or not 0 <= held_out < 1:
        raise InvalidConfig(
            f"shares of traces are between 0 and 1; got false alarms {false_alarms:g} and held out {held_out:g}."
        )
    events = events or Events()
    traces = [trace for trace in traces if trace.calls]
    if not traces:
        raise InvalidInput("there is no trace with a call to learn from.")
    words = [[*events.symbols(trace.calls), END] for trace in traces]
    labels = ["good" if not is_bad(trace.label) else "bad" for trace in traces]
    strange = next((name for word in words for name in word[:-1] if name in (END, OTHER)), None)
    if strange:
        raise InvalidInput(f"a call is named {strange!r}, which monitors use themselves; rename it.")
    order = np.random.default_rng(seed).permutation(len(traces))
    apart = set(order[: round(held_out * len(traces))].tolist())
    train = [i for i in range(len(traces)) if i not in apart]
    if "good" not in {labels[i] for i in train}:
        raise InvalidInput("no trace to learn from ended well; a monitor needs some that did.")
    log = TraceTree.of(Trace(words[i], [labels[i]] * len(words[i]), None, traces[i].line) for i in train)

    def counted(found: Mealy) -> tuple[Mealy, Ints]:
        return _counted(found, [words[i] for i in train], [labels[i] for i in train])

    if machine is not None:
        automaton, counts = counted(machine)
    else:
        tree, test = _with_absent(log), [(words[i], labels[i]) for i in sorted(apart)]
        shares = NOISES if noise is None and test else (NOISES[2] if noise is None else noise,)
        found = (learn(tree, kind="mealy", missing="loop", noise=share, max_states=max_states) for share in shares)
        tried = [counted(one.machine.to_mealy()) for one in found]
        automaton, counts = min(tried, key=lambda one: _surprise(one[0], one[1], test))
    monitor = _scored(automaton, counts, events, 0.5)
    good = [traces[i] for i in sorted(apart) if labels[i] == "good"]
    monitor = _scored(automaton, counts, events, _threshold(monitor.scores(good), false_alarms))
    alarms = len(good) - sum(map(monitor.allows, good))
    notes = [f"{alarms:,} of {len(good):,} good held-out traces have a call that is not allowed"]
    if false_alarms * len(good) < 1:
        notes.append(f"these are too few to see a share of {false_alarms:g}")
    elif alarms > false_alarms * len(good):
        notes.append("that is more than wanted: some calls never came there; give more traces, or read less of a call")
    if both := _contradictions(words, labels):
        notes.append(f"{both:,} traces have the calls of one with another label: scores there are shares of both")
    if clocks := _clocks_back(events, traces):
        notes.append(f"the clock went back {clocks:,} times, which counts as no wait")
    monitor = replace(monitor, notes=tuple(notes))
    return monitor.with_policies(policies) if policies else monitor


def _with_absent(log: TraceTree) -> TraceTree:
    """The log with an output `absent` where a call never came: as often as it would come anywhere."""
    arrays, symbols = log.tree.arrays, len(log.symbols)
    n = len(arrays.parent)
    inner = np.arange(1, n)
    passing = np.bincount(arrays.parent[inner], arrays.visits[inner], n)
    share = np.bincount(arrays.symbol[inner], arrays.visits[inner], symbols) / arrays.visits[inner].sum()
    often = np.flatnonzero(passing * share.max() >= 0.5)
    has = np.zeros((n, symbols), bool)
    has[arrays.parent[inner], arrays.symbol[inner]] = True
    wanted = np.where(has[often], 0, np.rint(passing[often, None] * share)).astype(np.int64)
    place, symbol = np.nonzero(wanted)
    new = n + np.arange(len(place))
    absent = log.outputs.setdefault("absent", len(log.outputs))
    joined = TreeArrays(
        parent=np.concatenate([arrays.parent, often[place]]), symbol=np.concatenate([arrays.symbol, symbol]),
        visits=np.concatenate([arrays.visits, np.zeros(len(new), np.int64)]),
        node=np.concatenate([arrays.node, new]), output=np.concatenate([arrays.output, np.full(len(new), absent)]),
        count=np.concatenate([arrays.count, wanted[place, symbol]]),
        line=np.concatenate([arrays.line, np.zeros(len(new), np.int64)]),
    )  # fmt: skip
    tree = PrefixTree(max_nodes=log.tree.max_nodes)
    tree.merge_arrays(joined, log.tree.words)
    return replace(log, tree=tree, observed=log.observed + int(wanted.sum()))


def _counted(machine: Mealy, words: list[list[str]], labels: list[str]) -> tuple[Mealy, Ints]:
    """The machine with loops where no trace went, with the symbol `<other>`; and its counts (2 A n)."""
    counts = np.zeros((2, machine.n_symbols + 1, machine.n_states), np.int64)
    number = {name: a for a, name in enumerate(machine.symbols)}
    tables = machine.tables.tolist()
    unread = {name for word in words for name in word} - set(number)
    if unread:
        raise InvalidConfig(f"the machine does not read {min(unread)!r}, which the traces have.")
    for word, label in zip(words, labels, strict=True):
        q, row = machine.start, counts[int(label == "bad")]
        for name in word:
            a = number[name]
            row[a, q] += 1
            q = tables[a][q]
    stay = np.arange(machine.n_states)
    seen = counts.sum(axis=0)[:-1] > 0
    seen[number[END]] = False  # nothing follows the end
    kept = np.concatenate([np.where(seen, machine.tables, stay), stay[None]]).astype(np.int64)
    used = np.array(_reached(kept, machine.start))
    place = np.full(machine.n_states, MISSING)
    place[used] = np.arange(len(used))
    automaton = Mealy(
        symbols=(*machine.symbols, OTHER), tables=place[kept[:, used]], states=tuple(f"s{q}" for q in range(len(used))),
        outputs=(ALLOWED,), readout=np.zeros((machine.n_symbols + 1, len(used)), np.int64),
    )  # fmt: skip
    return automaton, counts[:, :, used]


def _surprise(machine: Mealy, counts: Ints, test: list[tuple[list[str], str]]) -> float:
    """Minus the log-likelihood of the calls and the labels of traces; of machines with the same, the smaller counts."""
    good, total = counts[0].astype(float), counts.sum(axis=0).astype(float)
    anywhere = (total.sum(axis=1) + 0.5) / (total.sum() + 0.5 * len(total))
    call = -np.log((total + anywhere[:, None]) / (total.sum(axis=0) + 1))
    is_bad = np.clip((total - good + 0.5) / (total + 1), 1e-9, 1)
    label = np.stack([-np.log(1 - is_bad), -np.log(is_bad)]) if (total > good).any() else np.zeros((2, *total.shape))
    number, tables = {name: a for a, name in enumerate(machine.symbols)}, machine.tables.tolist()
    surprise = 1e-6 * machine.n_states
    for word, outcome in test:
        q = machine.start
        for name in word:
            a = number.get(name, number[OTHER])
            surprise += call[a, q] + label[int(outcome == "bad"), a, q]
            q = tables[a][q]
    return surprise


def _reached(tables: Ints, start: int) -> list[int]:
    from exactstate.automata.minimize import reachable

    return reachable(tables, start).tolist()


def _scored(automaton: Mealy, counts: Ints, events: Events, threshold: float) -> Monitor:
    """The monitor with a verdict and a score on every transition."""
    good, bad = counts
    scores = np.round((bad + 0.5) / (good + bad + 1), 4)
    names: dict[str, int] = {}
    readout = np.empty(scores.shape, np.int64)
    for (a, q), score in np.ndenumerate(scores):
        seen = good[a, q] + bad[a, q] > 0
        verdict = ALLOWED if seen and score < threshold else FORBIDDEN if bad[a, q] > good[a, q] else UNEXPECTED
        readout[a, q] = names.setdefault(f"{verdict}:{score:g}", len(names))
    machine, ends = replace(automaton, outputs=tuple(names), readout=readout), counts[:, automaton.symbols.index(END)]
    return Monitor(
        machine=Machine.of(machine), events=events, threshold=threshold, counts=counts,
        traces=(int(ends[0].sum()), int(ends[1].sum())),
    )  # fmt: skip


def _threshold(scores: list[float], share: float) -> float:
    """The smallest threshold that at most this share of good traces reaches."""
    ranked, allowed = sorted(scores, reverse=True), math.floor(share * len(scores))
    return min(math.nextafter(ranked[allowed], 2.0), 1.0) if allowed < len(ranked) else 0.5


def _contradictions(words: list[list[str]], labels: list[str]) -> int:
    """How many traces have the same symbols as one with another label."""
    found: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for word, label in zip(words, labels, strict=True):
        found[tuple(word)][label] += 1
    return sum(sum(one.values()) for one in found.values() if len(one) > 1)


def _clocks_back(events: Events, traces: Iterable[CallTrace]) -> int:
    """How often the clock goes back within a trace."""
    total = 0
    for trace in traces if events.wait else ():
        session = Session(events)
        for call in trace.calls:
            session.symbols(call)
        total += session.backwards
    return total
