"""`Assumptions` and `Arithmetic`: impossible assumptions are refused, and the errors that follow cover every chain."""

from __future__ import annotations

import pytest

from exactstate.errors import InvalidConfig, UnknownName
from exactstate.extract.graph.arithmetic import ASSUMED, EXACT, Assumptions
from exactstate.number_formats import FORMATS


def test_assumptions_exist_for_every_format():
    assert ASSUMED.keys() == FORMATS.keys()


@pytest.mark.parametrize(
    ("format", "inside", "inner", "unit"),
    [
        ("float32", "float32", "float32", 0.0),
        ("float64", "float32", "float64", 0.0),
        ("bfloat16", "float32", "float32", 2.0**-8),
        ("float16", "float32", "float32", 2.0**-11),
        ("float16", "same", "float16", 0.0),
    ],
)
def test_arithmetic_has_an_inner_format(format, inside, inner, unit):
    arithmetic = Assumptions(inside=inside).arithmetic(format)
    assert (arithmetic.inner.name, arithmetic.unit) == (inner, unit)


def test_gamma_is_infinite_for_sums_too_long_for_the_accumulator():
    same = Assumptions(inside="same").arithmetic("bfloat16")
    assert same.gamma(255) < float("inf")
    assert same.gamma(256) == float("inf")
    assert EXACT.gamma(10**9) == EXACT.silu == 0.0


def test_gamma_covers_a_chain_of_roundings():
    arithmetic = Assumptions().arithmetic("float16")
    for n in (1, 7, 100):
        assert (1 + arithmetic.inner.unit) ** n - 1 <= arithmetic.gamma(n)
        assert (1 - arithmetic.inner.unit) ** -n - 1 <= arithmetic.gamma(n)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"exp": 0.25}, "exp is an error of at least 0.5 ulp; got 0.25"),
        ({"basic": float("nan")}, "basic is an error of at least 0.5 ulp; got nan"),
        ({"variance": 1.0}, "variance is a factor of at least 4; got 1.0"),
    ],
)
def test_assumptions_that_are_impossible_are_refused(settings, sentence):
    with pytest.raises(InvalidConfig, match=sentence):
        Assumptions(**settings)


def test_assumptions_with_unknown_names_are_refused():
    with pytest.raises(UnknownName, match=r"unknown format 'float8'. Did you mean"):
        Assumptions().arithmetic("float8")
    with pytest.raises(UnknownName, match=r"unknown inner format 'float23'. Did you mean 'float32'"):
        Assumptions(inside="float23")


def test_assumptions_as_sentences():
    said = " / ".join(Assumptions(exp=16.0, basic=1.0).sentences("bfloat16"))
    for part in ("rounded to bfloat16", "1 ulp of float32", "exponential by 16", "4 gamma(m + 3)", "1.18e-38"):
        assert part in said
