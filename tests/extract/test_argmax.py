"""The arg max with its margin: the lowest index on a tie, a margin never too large; of many labels as of few."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from exactstate.errors import InvalidInput
from exactstate.extract import argmax, extract
from exactstate.extract.argmax import ArgmaxMargins, ScreenedReadout, can_screen
from tests.extract.graph.examples import build


def test_argmax_margins_of_random_logits() -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(50, 7))
    found = ArgmaxMargins.of(logits.copy(), "they")
    for row, best, second, margin in zip(logits, found.best, found.runner_up, found.margins, strict=True):
        order = sorted(range(7), key=lambda j: -row[j])
        assert [best, second] == order[:2]
        exact = Fraction(row[order[0]]) - Fraction(row[order[1]])
        assert Fraction(margin) <= exact
        assert margin == pytest.approx(float(exact), rel=1e-14)


def test_argmax_margins_of_a_tie() -> None:
    found = ArgmaxMargins.of(np.array([[1.0, 5.0, 5.0], [2.0, 2.0, 2.0]]), "they")
    assert found.best.tolist() == [1, 0]
    assert found.runner_up.tolist() == [2, 1]
    assert found.margins.tolist() == [0.0, 0.0]


def test_argmax_margins_of_one_entry_are_infinite() -> None:
    found = ArgmaxMargins.of(np.array([[3.0]], np.float32), "they")
    assert found.best.tolist() == [0]
    assert found.margins.tolist() == [np.inf]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_argmax_margins_refuse_what_is_not_finite(bad: float) -> None:
    with pytest.raises(
        InvalidInput, match="the logits of layer 3 are not all finite; such weights describe no machine"
    ):
        ArgmaxMargins.of(np.array([[0.0, bad]]), "the logits of layer 3")


def read_out(labels: int, rank: int | None = None, *, seed: int = 0) -> nn.Linear:
    generator = torch.Generator().manual_seed(seed)
    readout = nn.Linear(24, labels, dtype=torch.float64)
    weight = torch.randn(labels, 24, generator=generator)
    if rank is not None:
        weight = torch.randn(labels, rank, generator=generator) @ torch.randn(rank, 24, generator=generator)
    with torch.no_grad():
        readout.weight.copy_(weight)
        readout.bias.copy_(torch.randn(labels, generator=generator))
    return readout


@pytest.mark.parametrize("rank", [None, 5], ids=["full", "low"])
@pytest.mark.parametrize("labels", [2, 31, 32, 33, 1500])
def test_screened_readout_has_the_two_largest_of_all_logits(labels: int, rank: int | None, monkeypatch) -> None:
    monkeypatch.setattr(argmax, "AT_ONCE", 7 * labels)
    readout = read_out(labels, rank)
    screened = ScreenedReadout(readout)
    assert screened.basis.shape[1] == (24 if rank is None else 5) or labels < 24
    x = 3 * torch.randn(200, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        whole, found = ArgmaxMargins.of(readout(x).numpy(), "they"), screened.argmax(x, "they")
    assert np.array_equal(found.best, whole.best)
    assert np.array_equal(found.runner_up, whole.runner_up)
    np.testing.assert_allclose(found.margins, whole.margins, rtol=1e-9, atol=1e-12)


def test_screened_readout_computes_near_ties_in_float64() -> None:
    """Labels that float32 cannot tell apart: rows of the weights that differ by 1e-12, and by nothing."""
    readout = read_out(1200)
    with torch.no_grad():
        for copy in range(1, 40):
            readout.weight[30 * copy] = readout.weight[0] * (1 + 1e-12 * (copy % 7))
            readout.bias[30 * copy] = readout.bias[0]
        x = readout.weight[:1] * torch.linspace(5, 9, 50, dtype=torch.float64)[:, None]
        whole, found = ArgmaxMargins.of(readout(x).numpy(), "they"), ScreenedReadout(readout).argmax(x, "they")
    assert len({0} | set(found.best)) > 1
    assert (found.margins < 1e-9).all()
    assert (whole.margins < 1e-9).all()
    tied = (readout.weight[found.best] == readout.weight[whole.best]).all(dim=1)
    assert bool(tied.all())


def test_screened_readout_gives_the_lowest_label_of_a_tie() -> None:
    readout = read_out(64)
    with torch.no_grad():
        readout.weight.zero_()
        readout.bias.zero_()
        found = ScreenedReadout(readout).argmax(torch.ones(3, 24, dtype=torch.float64), "they")
    assert (found.best == 0).all()
    assert (found.runner_up == 1).all()
    assert (found.margins == 0).all()


def test_screened_readout_refuses_what_is_not_finite() -> None:
    readout = read_out(64)
    x = torch.ones(3, 24, dtype=torch.float64)
    x[1, 3] = torch.nan
    with pytest.raises(InvalidInput, match="they are not all finite"), torch.no_grad():
        ScreenedReadout(readout).argmax(x, "they")


def test_can_screen_needs_many_labels_and_true_float32() -> None:
    assert can_screen(read_out(1024))
    assert not can_screen(read_out(1023))
    assert not can_screen(read_out(1024).float())
    torch.set_float32_matmul_precision("medium")
    try:
        assert not can_screen(read_out(1024))
    finally:
        torch.set_float32_matmul_precision("highest")


def test_extract_with_and_without_screening(monkeypatch) -> None:
    model = build(16, ((4, 3),), labels=40)
    whole = extract(model)
    monkeypatch.setattr(argmax, "LEAST_LABELS", 2)
    found = extract(model)
    assert np.array_equal(found.label_ids, whole.label_ids)
    np.testing.assert_allclose(found.label_margins, whole.label_margins, rtol=1e-9, atol=1e-12)
