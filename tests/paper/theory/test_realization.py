"""R1 to R3: proved below the bound and refuted above it, wrong triples for the right reason; two rates."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest

from exactstate.automata import Semiautomaton, cyclic, factor, flip_flop, symmetric
from exactstate.errors import InvalidConfig, InvalidInput
from paper.theory.constructions import (
    eta_0,
    from_factoring,
    from_logits,
    from_tables,
    logit_margin,
    one_hot,
    shift_register,
    stacked,
)
from paper.theory.realization import realizes, two_rates
from paper.theory.shapes import NORMS, Ball, Box, exact
from paper.theory.triples import Affine, Triple
from tests.paper.theory.machines import all_of, hold, last_symbols

HAIR = 1 + 1e-6


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("machine", [symmetric(3), flip_flop(), cyclic(5)], ids=("S3", "FF", "Z5"))
def test_realizes_one_hot_up_to_eta_0(machine: Semiautomaton, norm: str) -> None:
    triple = one_hot(machine, norm)
    below, above = realizes(triple, machine, eta_0(norm) / HAIR), realizes(triple, machine, eta_0(norm) * HAIR)
    assert below.proved
    assert [finding.explain() for finding in below.conditions] == ["R1 proved", "R2 proved", "R3 proved"]
    assert not above
    witness = above["R3"].witness
    assert witness is not None
    assert witness.read != witness.state
    q = machine.state_number(witness.state)
    assert np.linalg.norm(witness.u - triple.codes[q], {"inf": np.inf, "2": 2, "1": 1}[norm]) <= eta_0(norm) * HAIR


def test_realizes_one_hot_of_every_small_automaton_and_no_other() -> None:
    """All 16 automata with two states and two symbols, each against each."""
    machines = list(all_of(2, 2))
    for one in machines:
        for other in machines:
            assert bool(realizes(one_hot(one), other, F(2, 5))) == (one == other)


def test_realizes_refutes_a_wrong_table_at_the_wrong_entry() -> None:
    wrong = symmetric(3).tables.astype(int)
    wrong[1, 4] = 0
    found = realizes(one_hot(Semiautomaton(symbols=("x", "y"), tables=wrong)), symmetric(3), 0.4)
    assert [finding.status for finding in found.conditions] == ["proved", "proved", "refuted"]
    witness = found["R3"].witness
    assert witness is not None
    assert (witness.state, witness.symbol, witness.read) == (symmetric(3).states[4], symmetric(3).symbols[1], "e")
    assert "read as 'e'" in found.explain()


def test_realizes_from_factoring() -> None:
    machine = symmetric(3)
    factoring = factor(machine)
    assert len(factoring.sizes) > 1
    triple = from_factoring(factoring)
    assert realizes(triple, machine, 0.499).proved
    assert not realizes(triple, machine, 0.501)


def test_realizes_stacked_cascade_with_updated_index() -> None:
    below, above = flip_flop(), cyclic(3)
    feed = [[0, 1, 2], [1, 1, 0], [2, 0, 2]]
    triple, target = stacked(below, above, feed)
    assert realizes(triple, target, 0.49).proved
    from exactstate.automata import cascade

    other = cascade(below, above, feed, reads="previous")
    assert not realizes(triple, other, 0.49)


def test_realizes_refutes_r3_for_indices_without_a_state() -> None:
    """A head that leaves the code: every index of Q is at zero there, and a small perturbation decides what is read."""
    theta = np.zeros((1, 3, 3))
    theta[0, 2, :] = 1
    found = realizes(from_logits(theta, states=2), hold(), 0.1)
    assert found["R2"].status == "refuted"
    assert found["R3"].status == "refuted"


def test_logit_margin_bounds_the_error_that_keeps_the_table() -> None:
    generator = np.random.default_rng(3)
    theta = generator.standard_normal((6, 6))
    margin, table = logit_margin(theta), theta.argmax(0)
    for signs in generator.choice([-1, 1], (300, 6, 6)):
        assert np.array_equal((theta + 0.499 * margin * signs).argmax(0), table)
    ordered = np.sort(theta, axis=0)
    column = int((ordered[-1] - ordered[-2]).argmin())
    against = np.where(np.arange(6) == table[column], -1, 1)
    worst = np.zeros((6, 6))
    worst[:, column] = against
    assert not np.array_equal((theta + 0.501 * margin * worst).argmax(0), table)


def boxes(codes: np.ndarray, radius: F) -> list:
    return [[Box(exact(code), np.full(len(code), radius, object))] for code in codes]


class Nearest:
    """The round_to_format code point of a line."""

    def __init__(self, codes: np.ndarray) -> None:
        self.codes = codes

    def __call__(self, h: np.ndarray) -> np.ndarray:
        return np.abs(h - self.codes[:, 0]).argmin(-1)

    def on(self, shape: Box | Ball) -> int:
        center, reach = (part[0] for part in shape.floats)
        ends = self(np.array([[center - reach], [center + reach]]))
        return int(ends[0]) if ends[0] == ends[1] else -1


CODES = np.array([[-1.0], [1.0]])


def test_realizes_refutes_r2_or_r3_of_affine_steps() -> None:
    """Whatever the rate, two cells are not both invariant: the identity keeps errors, a contraction moves codes."""
    for rate in (0.25, 0.5, 0.9, 1.0, 1.5):
        step = Affine(np.array([[[rate]]]), np.zeros((1, 1)))
        triple = Triple(CODES, step, Nearest(CODES), lambda eta: boxes(CODES, F(1, 2)))
        found = realizes(triple, hold(), F(1, 100))
        assert not found, rate


def test_realizes_affine_steps_of_a_definite_target() -> None:
    resets = Semiautomaton(symbols=("a", "b"), tables=[[0, 0], [1, 1]])
    step = Affine(np.full((2, 1, 1), 0.25), np.array([[-0.75], [0.75]]))
    triple = Triple(CODES, step, Nearest(CODES), lambda eta: boxes(CODES, F(99, 100)))
    assert not realizes(triple, resets, F(1, 4))  # from -1 the step lands at 0.5: too far from 1 for a rate of 1/4
    step = Affine(np.zeros((2, 1, 1)), CODES)
    assert realizes(replace(triple, step=step), resets, F(98, 100)).proved
    assert realizes(replace(triple, step=step), resets, F(995, 1000))["R2"].status == "refuted"


def test_realizes_samples_steps_that_are_functions() -> None:
    triple = Triple(CODES, lambda symbol, h: np.tanh(4 * h), Nearest(CODES), lambda eta: boxes(CODES, F(1, 2)))
    held = realizes(triple, hold(), 0.4)
    assert held
    assert not held.proved
    assert held["R2"].explain() == "R2 sampled"
    assert realizes(triple, hold(), 0.6)["R2"].status == "refuted"
    slow = replace(triple, step=lambda symbol, h: np.tanh(h))
    assert not realizes(slow, hold(), 0.4)


def test_realizes_refutes_r1_for_codes_outside_their_cells() -> None:
    off = replace(
        one_hot(hold()), cells=lambda eta: [[Ball(exact([3, 0]), eta, "inf")], [Ball(exact([0, 3]), eta, "inf")]]
    )
    assert realizes(off, hold(), 0.4)["R1"].status == "refuted"
    swapped = replace(one_hot(hold()), codes=np.eye(2)[::-1])
    assert "is read as '1'" in realizes(swapped, hold(), 0.4)["R1"].explain()


def test_realizes_refuses_bad_input() -> None:
    with pytest.raises(InvalidConfig, match="a perturbation level is positive; got 0"):
        realizes(one_hot(hold()), hold(), 0)
    with pytest.raises(InvalidInput, match="a code point for each of the 3 states; got 2"):
        realizes(one_hot(hold()), hold(3), 0.1)
    with pytest.raises(InvalidInput, match=r"matrices \(A, d, d\) and vectors \(A, d\); got \(2, 3\) and \(2,\)"):
        Affine(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(
        InvalidInput, match=r"logits are \(A, d, d\) with d of at least 4 states; got shape \(1, 3, 3\)"
    ):
        from_logits(np.zeros((1, 3, 3)), states=4)


def test_realizes_refuses_a_state_without_a_cell() -> None:
    bare = replace(one_hot(hold()), cells=lambda eta: [[Ball(exact([1, 0]), eta, "inf")], []])
    with pytest.raises(InvalidInput, match=r"each of the 2 states has a cell of at least one shape; got \[1, 0\]"):
        realizes(bare, hold(), 0.1)


def test_realizes_refutes_a_factoring_of_another_machine() -> None:
    machine = cyclic(4)
    halves = from_tables((2, 2), [np.array([[0, 1], [1, 0], [0, 1], [1, 0]])] * 2, [(0, 0), (1, 0), (0, 1), (1, 1)])
    assert realizes(halves, machine, 0.4)["R3"].status == "refuted"


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("machine", [symmetric(3), flip_flop()], ids=("S3", "FF"))
def test_two_rates_of_one_hot(machine: Semiautomaton, norm: str) -> None:
    eta = 0.99 * eta_0(norm)
    for length in (1, 2, 3):
        for word in product(range(machine.n_symbols), repeat=length):
            found = two_rates(one_hot(machine, norm), machine, eta, word)
            assert found.contraction >= 2 * eta - 1e-12
            assert found.separation > 2 * eta - 1e-12


@pytest.mark.parametrize("k", [2, 3])
def test_two_rates_of_a_shift_register(k: int) -> None:
    machine = last_symbols(k)
    register = shift_register(machine)
    for scale, held in ((F(99, 100), True), (F(101, 100), False)):
        eta = float(register.eta_0 * scale)
        words = [word for length in (1, 2) for word in product((0, 1), repeat=length)]
        found = [two_rates(register.triple, machine, eta, word) for word in words]
        assert all(rates.contraction >= 2 * eta - 1e-12 for rates in found)
        assert all(rates.separation >= 2 * eta - 1e-12 for rates in found) == held


def test_two_rates_of_an_affine_map_are_one() -> None:
    """Along a repeated word a contraction narrows the cells and the distance between them alike."""
    codes = np.array([[-1.0], [1.0]])
    for rate in (0.5, 0.9, 1.0):
        triple = Triple(
            codes, Affine(np.full((1, 1, 1), rate), np.zeros((1, 1))), lambda h: (h[..., 0] > 0).astype(int),
            lambda eta: [[Box(exact(code), exact([0.5]))] for code in codes],
        )  # fmt: skip
        for length in (1, 5, 40):
            found = two_rates(triple, hold(), 0.01, [0] * length)
            assert found.separation == pytest.approx(rate**length)
            assert found.contraction == pytest.approx(1 - rate**length, abs=1e-12)
            assert not (found.separation >= 0.02 and found.contraction >= 0.02) or length < 40


def test_two_rates_of_a_resetting_word_has_infinite_separation() -> None:
    machine = last_symbols(2)
    assert two_rates(shift_register(machine).triple, machine, 0.1, [0, 1, 1]).separation == float("inf")


def test_two_rates_refuses_functions() -> None:
    triple = Triple(np.eye(2), lambda symbol, h: h, lambda h: h.argmax(-1), one_hot(hold()).cells)
    with pytest.raises(InvalidInput, match="for affine steps and tables; this step is a function"):
        two_rates(triple, hold(), 0.1, [0])
    assert two_rates(one_hot(cyclic(2)), cyclic(2), 0.25, []).contraction == 0
