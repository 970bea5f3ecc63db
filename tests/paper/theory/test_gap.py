"""The gap between two orders of evaluation: zero for tables, bounded for contractions, growing for rotations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate.errors import UnknownName
from paper.theory.gap import FORMATS, MODELS, Diagonal, PermutedDiagonal, Tables, gap_rows, gaps

SMALL = {"words": 5, "length": 700, "per_decade": 6}


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return list(gap_rows(seeds=[0, 1], **SMALL))


def curve(rows: list[dict], model: str, format: str) -> dict[int, float]:
    """step -> mean gap over seeds."""
    told = [row for row in rows if row["kind"] == "step" and (row["model"], row["format"]) == (model, format)]
    steps = sorted({row["step"] for row in told})
    return {step: float(np.mean([row["gap"] for row in told if row["step"] == step])) for step in steps}


def test_gap_rows_of_tables_are_zero(rows: list[dict]) -> None:
    assert {row["gap_max"] for row in rows if row["model"] == "NFSM"} == {0.0}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("model", ["Mamba-", "AUSSM", "PD-SSM"])
def test_gap_rows_of_affine_recurrences_are_positive(rows: list[dict], model: str, format: str) -> None:
    assert curve(rows, model, format)[700] > 0


@pytest.mark.parametrize("format", FORMATS)
def test_gap_rows_grow_for_isometries_and_level_off_for_contractions(rows: list[dict], format: str) -> None:
    growth = {}
    for model in ("AUSSM", "PD-SSM"):
        told = curve(rows, model, format)
        early = min(told, key=lambda step: abs(step - 50))  # within its first chunks the scan takes the loop's steps
        growth[model] = told[700] / told[early]
    assert growth["AUSSM"] > 5
    assert growth["PD-SSM"] < 2


@pytest.mark.parametrize("model", ["Mamba-", "AUSSM", "PD-SSM"])
def test_gap_rows_are_larger_in_a_coarser_format(rows: list[dict], model: str) -> None:
    assert curve(rows, model, "fp16")[700] > 100 * curve(rows, model, "fp32")[700]


def test_gap_rows_have_ordered_quantiles(rows: list[dict]) -> None:
    for row in rows:
        told = [row[name] for name in ("gap_min", "gap_q25", "gap_median", "gap_q75", "gap_max")]
        assert told == sorted(told)
        assert told[0] <= row["gap"] <= told[-1]


def by_matrices(recurrence: Diagonal | PermutedDiagonal | Tables, word: list[int]) -> np.ndarray:
    """The states of one word in float64, every step a matrix."""
    if isinstance(recurrence, Tables):
        at, states = np.zeros(len(recurrence.heads), int), []
        for letter in word:
            rows = np.split(recurrence.tables[letter].numpy(), np.cumsum(recurrence.heads)[:-1])
            at = np.array([row[k] for row, k in zip(rows, at, strict=True)])
            states.append(np.concatenate([np.eye(d)[k] for d, k in zip(recurrence.heads, at, strict=True)]))
        return np.array(states)

    def plain(x: torch.Tensor) -> np.ndarray:
        values = x.double().numpy()
        return values @ np.array([1, 1j]) if values.shape[-1] == 2 else values

    b = plain(recurrence.b).reshape(5, -1)
    diagonals = plain(recurrence.d if isinstance(recurrence, PermutedDiagonal) else recurrence.a).reshape(5, -1)
    h, states = np.zeros(b.shape[1], b.dtype), []
    for letter in word:
        A = np.diag(diagonals[letter])
        if isinstance(recurrence, PermutedDiagonal):
            A = np.eye(len(A))[:, recurrence.table[letter]] @ A
        h = A @ h + b[letter]
        states.append(h)
    found = np.array(states)
    return np.stack([found.real, found.imag], axis=-1).reshape(len(word), -1) if found.dtype == complex else found


@pytest.mark.parametrize("model", MODELS)
def test_parallel_and_sequential_are_the_recurrence_up_to_rounding(model: str) -> None:
    words = torch.randint(5, (2, 40), generator=torch.Generator().manual_seed(3))
    recurrence = MODELS[model](torch.float32, torch.Generator().manual_seed(1))
    for word, *runs in zip(words, recurrence.sequential(words), recurrence.parallel(words), strict=True):
        wanted = by_matrices(recurrence, word.tolist())
        for run in runs:
            assert np.allclose(run.flatten(1).numpy(), wanted, atol=1e-5)
        assert not np.allclose(by_matrices(recurrence, word.flip(0).tolist()), wanted, atol=1e-3)


def test_gaps_are_the_largest_entry_of_the_difference() -> None:
    class Off(Diagonal):
        def parallel(self, words: torch.Tensor) -> torch.Tensor:
            states = self.sequential(words)
            states[1, 2, 0] += 0.25
            return states

    a, b = torch.full((5, 3), 0.5), torch.arange(15.0).view(5, 3)
    words = torch.randint(5, (11, 4), generator=torch.Generator().manual_seed(0))
    gap, size = gaps(Off(a, b, pairs=False), words)
    wanted = np.zeros((11, 4))
    wanted[1, 2] = wanted[9, 2] = 0.25  # eight words are run at a time
    assert np.array_equal(gap, wanted)
    assert size.shape == (11, 4)


def test_gap_rows_are_reproducible(rows: list[dict]) -> None:
    again = list(gap_rows(["AUSSM"], ["fp16"], seeds=[1], **SMALL))
    assert again == [row for row in rows if (row["model"], row["format"], row["seed"]) == ("AUSSM", "fp16", 1)]


def test_gap_rows_refuse_unknown_names() -> None:
    with pytest.raises(UnknownName, match=r"unknown model 'Mamba'\. Did you mean 'Mamba-'"):
        next(gap_rows(["Mamba"]))
    with pytest.raises(UnknownName, match="unknown number format 'fp12'"):
        next(gap_rows(["NFSM"], ["fp12"]))
