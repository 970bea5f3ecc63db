"""Compiled state merging and what goes with it give what Python gives: on clean, noisy, partial and odd logs."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.machines import connection, log_of, pairing, random_mealy
from exactstate._types import MISSING
from exactstate.errors import InvalidInput
from exactstate.learning import refine, state_merging
from exactstate.learning.learn import learn
from exactstate.learning.logs import Trace
from exactstate.learning.prefix_tree import PrefixTree
from exactstate.learning.state_merging import ORDERS, merge_states
from exactstate.learning.trace_tree import TraceTree, read_tree
from tests.learning.in_python import in_python, ranks_of


@pytest.fixture
def without_kernels(monkeypatch):
    """A call is computed in Python after `without_kernels()`."""
    return lambda: in_python(monkeypatch)


def outputs_of(kind, seed, *, words, length, n, missing=0.0, noise=0.0):
    """A tree of random words with outputs of a random machine; some are not seen, some are wrong."""
    generator = np.random.default_rng(seed)
    tables, k = generator.integers(0, n, (3, n)), 3 if kind != "dfa" else 2
    readout = generator.integers(0, k, (3, n) if kind == "mealy" else n)
    lengths = generator.integers(0, length + 1, words)
    symbols, outputs = generator.integers(0, 3, lengths.sum()), np.empty(lengths.sum(), int)
    begin = 0
    for count in lengths:
        state = 0
        for t in range(begin, begin + count):
            after = tables[symbols[t], state]
            outputs[t] = readout[symbols[t], state] if kind == "mealy" else readout[after]
            state = after
        begin += count
    outputs = np.where(generator.random(len(outputs)) < noise, (outputs + 1) % k, outputs)
    outputs = np.where(generator.random(len(outputs)) < missing, MISSING, outputs)
    tree = PrefixTree()
    tree.add_traces(symbols, outputs, lengths)
    return tree, {"symbols": 3, "outputs": k, "kind": kind}


def same(one, other):
    if one is None or other is None:
        return one is other
    equal = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("tables", "readout", "visits"))
    return equal and one.disagreeing == other.disagreeing


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["mealy", "moore", "dfa"])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_merge_states_compiled_equals_python_on_clean_logs(kind, order, missing, without_kernels):
    cases = [(1, 40, 6, 3), (2, 120, 10, 9), (3, 120, 9, 60)]
    logs = [outputs_of(kind, seed, words=w, length=length, n=n, missing=missing) for seed, w, length, n in cases]
    found = [merge_states(tree, order=order, **options) for tree, options in logs]
    without_kernels()
    for (tree, options), one in zip(logs, found, strict=True):
        assert same(one, merge_states(tree, order=order, **options))
    assert max(one.n_states for one in found) > 20


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["mealy", "moore", "dfa"])
def test_merge_states_compiled_equals_python_on_contradictory_logs(kind, order, without_kernels):
    logs = [outputs_of(kind, seed, words=90, length=9, n=5, missing=0.2, noise=0.08) for seed in range(3)]
    found = [merge_states(tree, order=order, noise=0.05, **options) for tree, options in logs]
    assert any(one.disagreeing for one in found)
    without_kernels()
    for (tree, options), one in zip(logs, found, strict=True):
        assert same(one, merge_states(tree, order=order, noise=0.05, **options))


@pytest.mark.parametrize("machine", [connection(), pairing()])
def test_merge_states_compiled_equals_python_on_protocols(machine, without_kernels):
    """Trials that are kept while regions next to them change."""
    log = read_tree(log_of(machine, 60, 15, np.random.default_rng(4)))
    options = {"symbols": len(log.symbols), "outputs": len(log.outputs)}
    found = {order: merge_states(log.tree, order=order, **options) for order in ORDERS}
    without_kernels()
    for order in ORDERS:
        assert same(found[order], merge_states(log.tree, order=order, **options)), order


@pytest.mark.parametrize("order", ["evidence", "margin"])
@pytest.mark.parametrize("kind", ["mealy", "dfa"])
def test_merge_states_refuses_a_merge_compiled_as_in_python(kind, order, without_kernels):
    tree, options = outputs_of(kind, 2, words=120, length=8, n=5)
    numbers = (None, 0, 1, 2, 5, 10_000)
    found = [merge_states(tree, order=order, refused=number, **options) for number in numbers]
    without_kernels()
    for number, one in zip(numbers, found, strict=True):
        assert same(one, merge_states(tree, order=order, refused=number, **options)), number
    assert same(found[0], found[-1])
    assert not same(found[0], found[1])
    assert all(one.disagreeing == 0 for one in found)


@pytest.mark.parametrize("order", ["visits", "shortlex"])
def test_merge_states_breaks_ties_by_the_transitions_that_lead_to_a_state(order):
    """Nothing is seen after 'b', and three transitions lead to the second state, none to the first."""
    log = [("aaaa", "1000"), ("acac", "1000"), ("aca", "100"), ("b", "0")]
    machine = learn([(list(word), list(seen)) for word, seen in log], order=order, missing="loop").machine
    assert machine.symbols == ("a", "c", "b")
    assert machine.tables.tolist() == [[1, 1], [0, 1], [1, 1]]


@pytest.mark.parametrize("kind", ["mealy", "moore"])
def test_machine_of_compiled_equals_python(kind, without_kernels):
    tree, options = outputs_of(kind, 5, words=80, length=10, n=6, missing=0.3, noise=0.2)
    arrays = tree.arrays
    tables = np.random.default_rng(1).integers(0, 4, (3, 4))
    states = refine._run(arrays, tables)
    one = state_merging.machine_of(arrays, states, 3, options["outputs"], kind == "mealy")
    without_kernels()
    assert np.array_equal(states, refine._run(arrays, tables))
    assert same(one, state_merging.machine_of(arrays, states, 3, options["outputs"], kind == "mealy"))
    assert one.disagreeing > 0


def test_run_of_a_partial_machine_is_missing_after_a_missing_transition(without_kernels):
    tree, _ = outputs_of("mealy", 6, words=30, length=5, n=3)
    tables = np.array([[1, MISSING], [0, 1], [0, 0]])
    assert refine._run(tree.arrays, tables).min() == MISSING
    without_kernels()
    assert refine._run(tree.arrays, tables).min() == MISSING


@pytest.mark.parametrize("words", [0, 1, 7, 300])
def test_ranks_compiled_equal_python(words):
    tree, _ = outputs_of("mealy", 7, words=words, length=8, n=4)
    one = tree.arrays.ranks
    prefixes = [tree.arrays.prefix(node) for node in range(len(tree))]
    expected = sorted(range(len(tree)), key=lambda node: (len(prefixes[node]), prefixes[node]))
    assert np.argsort(one).tolist() == expected
    assert np.array_equal(one, ranks_of(tree.arrays))


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_learn_compiled_equals_python(noise, without_kernels):
    log = log_of(random_mealy(6, 3, 3, np.random.default_rng(8)), 80, 10, np.random.default_rng(9), noise)
    one = learn(log, noise=noise)
    without_kernels()
    other = learn(log, noise=noise)
    assert (one.order, one.disagreeing, one.states) == (other.order, other.disagreeing, other.states)
    assert np.array_equal(one.machine.tables, other.machine.tables)
    assert np.array_equal(one.machine.readout, other.machine.readout)


def test_refine_without_disagreement_changes_nothing():
    tree, options = outputs_of("mealy", 10, words=60, length=8, n=3)
    merged = merge_states(tree, noise=0.01, **options)
    refined = refine.refine(tree.arrays, merged, symbols=3, outputs=3, noise=0.01)
    assert refined.disagreeing <= merged.disagreeing
    assert state_merging.UNIT == refine.UNIT


ODD_LOGS = [
    [(["a", "b"], ["x", "y"]), (["a"], ["x"])],
    [(["a", "b"], ["x", None]), ([], [])],
    [([1, True, 1.0], ["x", 2, None]), (("a",), ("1",))],
    [(["a", None], ["x", "y"]), (["None"], ["z"])],
]


@pytest.mark.parametrize("log", ODD_LOGS)
def test_read_tree_of_pairs_is_that_of_traces(log):
    """The names of every trace as strings, numbered in the order in which they come."""
    pairs = read_tree(log)
    traces = TraceTree.of(
        Trace([str(a) for a in word], [None if b is None else str(b) for b in seen], None, line)
        for line, (word, seen) in enumerate(log, start=1)
    )
    assert (pairs.symbols, pairs.outputs) == (traces.symbols, traces.outputs)
    assert (pairs.everywhere, pairs.observed, pairs.length) == (traces.everywhere, traces.observed, traces.length)
    for name in pairs.tree.arrays.__dataclass_fields__:
        assert np.array_equal(getattr(pairs.tree.arrays, name), getattr(traces.tree.arrays, name)), name


def test_read_tree_of_no_trace_is_refused():
    with pytest.raises(InvalidInput, match="no trace to learn from"):
        read_tree([])


def test_read_tree_in_many_chunks_is_the_whole(monkeypatch):
    log = log_of(pairing(), 50, 7, np.random.default_rng(3))
    whole = read_tree(log)
    monkeypatch.setattr("exactstate.learning.trace_tree.CHUNK", 20)
    parts = read_tree(log)
    assert (parts.symbols, parts.outputs, parts.observed) == (whole.symbols, whole.outputs, whole.observed)
    for name in whole.tree.arrays.__dataclass_fields__:
        assert np.array_equal(getattr(parts.tree.arrays, name), getattr(whole.tree.arrays, name)), name
