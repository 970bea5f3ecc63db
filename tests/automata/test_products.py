from __future__ import annotations

import numpy as np
import pytest

from exactstate.automata import (
    Moore,
    Semiautomaton,
    cascade,
    cyclic,
    direct_product,
    flip_flop,
    parallel,
    symmetric,
    tomita,
)
from exactstate.automata.products import pair_names
from exactstate.errors import InvalidMachine


def test_direct_product_runs_both() -> None:
    first, second = cyclic(3), symmetric(3)
    both = direct_product(first, second)
    assert both.n_states == 18
    assert both.symbols[:3] == ("(0, (0 1))", "(0, (1 2))", "(1, (0 1))")
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 3, 40), rng.integers(0, 2, 40)
    expected = first.trajectory(x).astype(int) * 6 + second.trajectory(y)
    assert np.array_equal(both.trajectory(x * 2 + y), expected)
    assert both.states[both.run([2 * 2 + 1])] == "(2, (1 2))"


def test_parallel_reads_the_same_word() -> None:
    both = parallel(tomita(5), tomita(6))
    word = np.random.default_rng(1).integers(0, 2, 60)
    said = both.output_ids(word)
    assert np.array_equal(said // 2, tomita(5).output_ids(word))
    assert np.array_equal(said % 2, tomita(6).output_ids(word))
    assert both.outputs == ("(reject, reject)", "(reject, accept)", "(accept, reject)", "(accept, accept)")


def test_parallel_needs_the_same_symbols() -> None:
    with pytest.raises(InvalidMachine, match="machines in parallel read the same symbols"):
        parallel(cyclic(2), cyclic(3))


@pytest.mark.parametrize("reads", ["previous", "updated"])
def test_cascade_is_a_counter_with_carry(reads: str) -> None:
    first, second = cyclic(3), cyclic(4)
    # the upper digit moves when the lower one wraps: seen before the step, or after it
    feed = [[int(p + a >= 3) if reads == "previous" else int(p < a) for p in range(3)] for a in range(3)]
    counter = cascade(first, second, feed, reads=reads)
    word = np.random.default_rng(2).integers(0, 3, 50)
    total = np.cumsum(word) % 12
    assert np.array_equal(counter.trajectory(word), (total % 3) * 4 + total // 3)


def test_cascade_after_a_reset_depends_on_what_is_read() -> None:
    first = flip_flop()
    feed = np.tile(np.arange(3) == 2, (3, 1)).astype(int)  # add one when the first machine is 'set'
    word = ["set", "reset", "identity"]
    assert [cascade(first, cyclic(2), feed, reads=reads).run(word) % 2 for reads in ("previous", "updated")] == [1, 1]
    assert [cascade(first, cyclic(2), feed, reads=reads).run(word[:1]) % 2 for reads in ("previous", "updated")] == [
        0,
        1,
    ]


def test_cascade_refuses_a_wrong_feed() -> None:
    with pytest.raises(
        InvalidMachine, match=r"feed holds a symbol number .* shape \(2, 2\); got int64 of shape \(1, 2\)"
    ):
        cascade(cyclic(2), cyclic(3), [[0, 0]])
    with pytest.raises(InvalidMachine, match=r"feed names symbols 0 to 3, but the second machine has 3 \(0\.\.2\)"):
        cascade(cyclic(2), cyclic(3), [[0, 0], [3, 0]])
    with pytest.raises(InvalidMachine, match="reads is 'previous' or 'updated'; got 'next'"):
        cascade(cyclic(2), cyclic(3), [[0, 0], [0, 0]], reads="next")  # type: ignore[type-var, arg-type]


def test_parallel_with_a_semiautomaton_is_a_semiautomaton() -> None:
    plain = Semiautomaton(symbols=("0", "1"), tables=[[0, 1], [1, 0]])
    assert type(parallel(plain, tomita(1))) is Semiautomaton
    assert type(parallel(tomita(1), tomita(1))) is Moore


def test_pair_names_that_would_collide_are_quoted() -> None:
    assert pair_names(("a, b", "a"), ("c", "b, c")) == (
        "('a, b', 'c')", "('a, b', 'b, c')", "('a', 'c')", "('a', 'b, c')",
    )  # fmt: skip
