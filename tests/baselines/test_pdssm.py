"""Column one-hot matrices from a dictionary: which row, on ties too, and the gradient of the softmax."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate.baselines import pdssm
from exactstate.baselines.blocks import Workspace
from exactstate.errors import InvalidInput
from tests.baselines.close import ROUNDING, distance


@pytest.fixture(params=[1 << 18, 100], ids=["at once", "in pieces"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdssm, "CACHED", request.param)
    monkeypatch.setattr(pdssm, "MIN_MIXTURES", 3)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("N", [1, 2, 5, 16])
def test_the_lowest_of_the_best_rows(N: int, dtype: torch.dtype) -> None:
    """Small integers, so that ties are frequent and every sum is exact; NumPy's arg max takes the first."""
    generator = torch.Generator().manual_seed(N)
    mixtures = torch.randint(-1, 2, (50, 3), generator=generator).to(dtype)
    dictionary = torch.randint(-2, 3, (N, N, 3), generator=generator).to(dtype)
    found = pdssm.choose(mixtures, dictionary)
    assert found.dtype == dtype
    scores = np.einsum("kjn,sn->skj", dictionary.double().numpy(), mixtures.double().numpy())
    assert np.array_equal(found.numpy(), scores.argmax(-1))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_not_finite_is_refused(wrong: float) -> None:
    mixtures, dictionary = torch.ones(4, 2), torch.ones(3, 3, 2)
    dictionary[1, 2, 0] = wrong
    with pytest.raises(InvalidInput, match="mixtures hold NaN or infinity"):
        pdssm.choose(mixtures, dictionary)


@pytest.mark.usefixtures("pieces")
def test_the_gradient_is_that_of_the_softmax() -> None:
    generator = torch.Generator().manual_seed(0)
    mixtures = torch.randn(40, 3, generator=generator, dtype=torch.float64).requires_grad_()
    dictionary = torch.randn(5, 5, 3, generator=generator, dtype=torch.float64).requires_grad_()
    moved, lam = (torch.randn(40, 5, generator=generator, dtype=torch.complex128) for _ in range(2))
    soft = torch.einsum("kjn,sn->skj", dictionary, mixtures).softmax(-1)  # column, row
    loss = (soft * (lam[:, None].conj() * moved[:, :, None]).real).sum()
    wanted = torch.autograd.grad(loss, (mixtures, dictionary))
    found = pdssm.hardmax_backward(
        mixtures.detach(), dictionary.detach(), (moved.real, moved.imag), (lam.real, lam.imag), Workspace(mixtures)
    )
    for ours, theirs in zip(found, wanted, strict=True):
        assert distance(ours, theirs) < ROUNDING


def test_the_operator_is_a_good_citizen() -> None:
    torch.library.opcheck(pdssm.choose, (torch.rand(7, 3), torch.rand(5, 5, 3)))
