"""Every row of the census against the eigenvalues of its matrices; and wrong rows are caught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paper.census import ENTRIES, Drawn, Entry, census_rows
from paper.census.attaining import delta_product
from paper.census.parts import diagonal
from paper.theory.branches import branch

BY_NAME = {entry.name: entry for entry in ENTRIES}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
@pytest.mark.parametrize("d", [4, 10])
def test_the_stated_spectrum_and_branch(entry: Entry, d: int) -> None:
    assert entry.disagreement(np.random.default_rng(d), d) is None


def test_all_rows_are_there() -> None:
    assert len(ENTRIES) == len(BY_NAME) == 32
    assert sum(entry.branch == "rho = 1" for entry in ENTRIES) == 14


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_moving_a_row_to_the_other_branch_is_caught(entry: Entry) -> None:
    other = "rho < 1" if entry.branch == "rho = 1" else "rho = 1"
    said = replace(entry, branch=other).disagreement(np.random.default_rng(0))
    assert said is not None
    assert f"so it is not on {other}" in said


@pytest.mark.parametrize(
    ("name", "other"), [("Mamba", "Mamba-"), ("gated DeltaNet", "DeltaNet"), ("RWKV-4", "mLSTM, exponential gate")]
)
def test_a_claim_with_the_matrices_of_another_row_is_caught(name: str, other: str) -> None:
    def mixed(generator: np.random.Generator, d: int, *, edge: bool) -> Drawn:
        claimed = BY_NAME[name].draw(generator, d, edge=edge)
        return replace(claimed, matrix=BY_NAME[other].draw(generator, d, edge=edge).matrix)

    said = replace(BY_NAME[name], draw=mixed).disagreement(np.random.default_rng(0))
    assert said is not None
    assert said.startswith(f"{name}: ")


def test_a_wrong_spectrum_is_caught() -> None:
    assert diagonal(np.array([0.5, 0.25])).disagreement() is None
    off = Drawn(np.diag([0.5, 0.26]), np.array([0.5, 0.25]))
    assert off.disagreement() == "the moduli are 0.26, 0.5, not 0.25, 0.5"
    assert Drawn(np.eye(2), at_most=0.9).disagreement() == "an eigenvalue has modulus 1, above 0.9"


def test_the_multiplicity_of_one_in_a_product_of_reflections() -> None:
    for seed in range(10):
        matrix = delta_product(np.random.default_rng(seed), 9, edge=False).matrix
        assert np.isclose(np.linalg.eigvals(matrix), 1).sum() >= 9 - 3


@pytest.mark.parametrize(
    "entry", [entry for entry in ENTRIES if entry.branch == "rho = 1"], ids=lambda entry: entry.name
)
def test_nothing_that_attains_one_is_called_contracting(entry: Entry) -> None:
    """The other judge of branches, which knows nothing of the census."""
    matrix = entry.draw(np.random.default_rng(3), 6, edge=True).matrix
    assert branch(matrix, rounding=1e-7).name in ("isometric", "neutral", "expanding")


def test_real_spectra_are_real() -> None:
    for name in ("RWKV-7", "Mamba-", "DeltaNet", "Longhorn"):
        eigenvalues = np.linalg.eigvals(BY_NAME[name].draw(np.random.default_rng(1), 8, edge=False).matrix)
        assert np.abs(eigenvalues.imag).max() < 1e-9, name


def test_rows_tell_what_was_measured() -> None:
    rows = census_rows()
    assert [row["name"] for row in rows] == [entry.name for entry in ENTRIES]
    for row in rows:
        low, high = row["rho"]
        assert 0 < low <= high
        assert (high < 1) == (row["branch"] == "rho < 1")
    assert census_rows() == rows
