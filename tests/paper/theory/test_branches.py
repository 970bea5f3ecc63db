"""Branches: known joint spectral radii, and the layers of the library."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate.baselines import AUSSM, PDSSM, MambaMinus
from exactstate.errors import InvalidInput
from paper.theory.branches import bracket, branch

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])
SHEAR = np.array([[1.0, 1.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ([0.5 * np.eye(2)], "contracting"),
        ([np.array([[0.5, 100.0], [0.0, 0.5]])], "contracting"),
        ([TURN], "isometric"),
        ([TURN, np.eye(2)], "isometric"),
        ([TURN, 0.5 * np.eye(2)], "neutral"),
        ([SHEAR], "neutral"),
        ([1.01 * TURN], "expanding"),
        ([np.array([[0.0, 2.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [2.0, 0.0]])], "expanding"),
    ],
)
def test_branch_of_known_families(family: list[np.ndarray], name: str) -> None:
    assert branch(family).name == name


def test_branch_of_two_nilpotent_matrices_is_expanding() -> None:
    """Each has radius zero; their product does not. Quantifying over letters alone would be wrong."""
    up, down = np.array([[0.0, 2.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [2.0, 0.0]])
    found = branch([up, down])
    assert found.radii.tolist() == [0, 0]
    assert found.word in ((0, 1), (1, 0))
    assert found.bracket == pytest.approx((2, 2))
    assert "seen on the word" in found.explain()
    assert "no automaton at every length" in found.allows


def test_bracket_of_the_golden_ratio() -> None:
    """{[[1, 1], [0, 1]], [[1, 0], [1, 1]]} has joint spectral radius (1 + sqrt 5) / 2, reached by the word 01."""
    low, high, word = bracket(np.array([SHEAR, SHEAR.T]), words=3000)
    golden = (1 + 5**0.5) / 2
    assert low == pytest.approx(golden)
    assert sorted(word) == [0, 1]
    assert low <= golden + 1e-12 <= high + 2e-12
    assert high < golden * 1.05


def test_bracket_contains_the_growth_of_long_words() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        family = generator.uniform(-1, 1, (3, 3, 3))
        low, high, _ = bracket(family, words=300)
        assert low <= high
        for length in (7, 20):
            for word in generator.integers(0, 3, (20, length)):
                whole = np.linalg.multi_dot(family[word])
                assert np.abs(np.linalg.eigvals(whole)).max() ** (1 / length) <= high * (1 + 1e-9)


def test_branch_reports_undecided() -> None:
    """A slow contraction whose norms are still above one on the words looked at; no answer is made up."""
    slow = np.array([[0.999, 50.0], [0.0, 0.999]])
    found = branch([slow])
    assert found.name == "undecided"
    assert "use longer ones" in found.explain()


@pytest.mark.parametrize(("kind", "name"), [(MambaMinus, "contracting"), (PDSSM, "contracting"), (AUSSM, "isometric")])
def test_branch_of_layers(kind: type, name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    layer = kind(8, 3, generator=generator)
    found = branch(layer, torch.randn(3, 8, generator=generator), words=50)
    assert found.name == name


def test_branch_refuses_bad_input() -> None:
    with pytest.raises(
        InvalidInput, match=r"matrices come as an array \(A, d, d\) or as one \(d, d\); got shape \(2, 3\)"
    ):
        branch(np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match="pass some rows of its width as inputs"):
        branch(AUSSM(4, 2))
