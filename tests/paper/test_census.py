"""Every architecture of the census against the eigenvalues of its matrices; wrong claims are detected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paper.census import ARCHITECTURES, Architecture, Transition, census_rows, diagonal, reflection_product
from paper.theory.branches import branch

BY_NAME = {entry.name: entry for entry in ARCHITECTURES}


@pytest.mark.parametrize("entry", ARCHITECTURES, ids=lambda entry: entry.name)
@pytest.mark.parametrize("d", [4, 10])
def test_mismatch_finds_none_in_any_architecture(entry: Architecture, d: int) -> None:
    assert entry.mismatch(np.random.default_rng(d), d) is None


def test_architectures_are_complete() -> None:
    assert len(ARCHITECTURES) == len(BY_NAME) == 32
    assert sum(entry.branch == "rho = 1" for entry in ARCHITECTURES) == 14


@pytest.mark.parametrize("entry", ARCHITECTURES, ids=lambda entry: entry.name)
def test_mismatch_detects_the_wrong_branch(entry: Architecture) -> None:
    other = "rho < 1" if entry.branch == "rho = 1" else "rho = 1"
    reason = replace(entry, branch=other).mismatch(np.random.default_rng(0))
    assert reason is not None
    assert f"so it is not on {other}" in reason


@pytest.mark.parametrize(
    ("name", "other"), [("Mamba", "Mamba-"), ("gated DeltaNet", "DeltaNet"), ("RWKV-4", "mLSTM, exponential gate")]
)
def test_mismatch_detects_matrices_of_another_architecture(name: str, other: str) -> None:
    def mixed(g: np.random.Generator, d: int, *, edge: bool) -> Transition:
        claimed = BY_NAME[name].draw(g, d, edge=edge)
        return replace(claimed, matrix=BY_NAME[other].draw(g, d, edge=edge).matrix)

    reason = replace(BY_NAME[name], draw=mixed).mismatch(np.random.default_rng(0))
    assert reason is not None
    assert reason.startswith(f"{name}: ")


def test_transition_mismatch_detects_a_wrong_spectrum() -> None:
    drawn = diagonal(lambda g, d, edge: np.array([0.5, 0.25]))(np.random.default_rng(0), 2, edge=False)
    assert drawn.mismatch() is None
    off = Transition(np.diag([0.5, 0.26]), np.array([0.5, 0.25]))
    assert off.mismatch() == "the moduli are 0.26, 0.5, not 0.25, 0.5"
    assert Transition(np.eye(2), bound=0.9).mismatch() == "an eigenvalue has modulus 1, above 0.9"


def test_reflection_product_has_eigenvalue_one_d_minus_three_times() -> None:
    for seed in range(10):
        matrix = reflection_product(np.random.default_rng(seed), 9, edge=False).matrix
        assert np.isclose(np.linalg.eigvals(matrix), 1).sum() >= 9 - 3


@pytest.mark.parametrize(
    "entry", [entry for entry in ARCHITECTURES if entry.branch == "rho = 1"], ids=lambda entry: entry.name
)
def test_branch_agrees_that_architectures_at_one_do_not_contract(entry: Architecture) -> None:
    """`paper.theory.branches`, an independent implementation."""
    matrix = entry.draw(np.random.default_rng(3), 6, edge=True).matrix
    assert branch(matrix, rounding=1e-7).name in ("isometric", "neutral", "expanding")


def test_draw_of_real_spectra_is_real() -> None:
    for name in ("RWKV-7", "Mamba-", "DeltaNet", "Longhorn"):
        eigenvalues = np.linalg.eigvals(BY_NAME[name].draw(np.random.default_rng(1), 8, edge=False).matrix)
        assert np.abs(eigenvalues.imag).max() < 1e-9, name


def test_census_rows_are_measured_and_reproducible() -> None:
    rows = census_rows()
    assert [row["name"] for row in rows] == [entry.name for entry in ARCHITECTURES]
    for row in rows:
        low, high = row["rho"]
        assert 0 < low <= high
        assert (high < 1) == (row["branch"] == "rho < 1")
    assert census_rows() == rows
