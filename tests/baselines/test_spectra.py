"""On which branch a baseline lies, read from the steps it executes in float32: |lambda| below one, or equal to one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from exactstate.baselines import AUSSM, PDSSM, MambaMinus
from exactstate.baselines.recurrent import Recurrent

ULP = float(np.spacing(np.float32(1)))
PROBES = 4 * ULP
"""Executed matrices are read off differences of two states of size one, each rounded twice."""


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(4)


def inputs(width: int) -> Tensor:
    return 2 * torch.randn(3, 50, width, generator=generator())


def executed(layer: Recurrent, x: Tensor) -> Tensor:
    """The matrix of one step on flattened real states, column by column: what it makes of e_k, less what of zero.

    The drives are switched off, so that the differences are exact to the last bits.
    """
    size = layer.initial_state(1).numel()
    basis = torch.eye(size).view(size, *layer.initial_state(1).shape[1:])
    with torch.no_grad():
        _, moved = layer(x.expand(size, 1, -1), basis)
        _, rest = layer(x.expand(size, 1, -1))
    return (moved - rest).flatten(1).T


def test_mamba_contracts() -> None:
    layer = MambaMinus(8, 5, 4, generator=generator())
    a = layer.transitions(inputs(8))
    assert a.dtype == torch.float32
    assert float(a.abs().max()) < 1


def test_mamba_s_eigenvalues_may_be_negative() -> None:
    layer = MambaMinus(8, 5, 4, generator=generator())
    with torch.no_grad():
        layer.dt_proj.bias.fill_(1.0)
    a = layer.transitions(inputs(8))
    assert -1 < float(a.min()) < -0.5
    assert float(a.max()) < 1


def test_what_mamba_executes_is_what_it_says() -> None:
    layer = MambaMinus(8, 3, 2, generator=generator())
    for row in inputs(8)[0, :5]:
        matrix = executed(layer, row)
        assert torch.equal(matrix, torch.diag(matrix.diag()))
        assert float((matrix.diag() - layer.transitions(row).flatten()).abs().max()) <= PROBES
        assert float(torch.linalg.eigvals(matrix).abs().max()) < 1


def test_aussm_turns() -> None:
    layer = AUSSM(8, 5, 4, generator=generator())
    eigenvalues = layer.transitions(inputs(8))
    assert eigenvalues.dtype == torch.complex64
    assert float((eigenvalues.abs() - 1).abs().max()) <= 2 * ULP
    assert float(eigenvalues.angle().abs().max()) > 1


def test_what_aussm_executes_is_what_it_says() -> None:
    layer = AUSSM(8, 3, 2, generator=generator())
    for row in inputs(8)[0, :5]:
        matrix = executed(layer, row)
        turns = layer.transitions(row).flatten()
        wanted = torch.block_diag(*(torch.tensor([[t.real, -t.imag], [t.imag, t.real]]) for t in turns))
        assert float((matrix - wanted).abs().max()) <= PROBES
        assert float((torch.linalg.eigvals(matrix).abs() - 1).abs().max()) <= 2 * PROBES


def test_pdssm_contracts() -> None:
    layer = PDSSM(8, 6, generator=generator())
    matrices = layer.transitions(inputs(8))
    assert matrices.dtype == torch.complex64
    assert float(torch.linalg.eigvals(matrices).abs().max()) < 1
    assert float(matrices.abs().sum(-2).max()) < 1


def test_what_pdssm_executes_is_what_it_says() -> None:
    layer = PDSSM(8, 4, generator=generator())
    for row in inputs(8)[0, :5]:
        matrix = executed(layer, row)
        re_im = layer.transitions(row)
        wanted = torch.stack([re_im.real, -re_im.imag, re_im.imag, re_im.real], dim=-1).view(4, 4, 2, 2)
        assert float((matrix - wanted.permute(0, 2, 1, 3).reshape(8, 8)).abs().max()) <= PROBES
        assert float(torch.linalg.eigvals(matrix).abs().max()) < 1


def test_pdssm_is_one_hot_by_column() -> None:
    """P e_k is a basis vector for every k; rows may hold several ones or none, so the row form is another model."""
    layer, x = PDSSM(8, 6, generator=generator()), inputs(8)
    matrices = layer.transitions(x)
    P = (matrices != 0).long()
    assert torch.equal(P.sum(-2), torch.ones_like(P[..., 0, :]))
    assert bool((P.sum(-1) != 1).any())
    assert torch.equal(P.argmax(-2), layer.tables(x))
    scores = torch.einsum("bln,njk->bljk", layer.streams(x)[0], layer.dictionary)
    assert torch.equal(layer.tables(x), scores.argmax(-2))


@pytest.mark.parametrize(("kind", "grows"), [(MambaMinus, False), (PDSSM, False), (AUSSM, True)])
def test_a_contracting_state_is_forgotten_and_an_isometric_one_is_not(kind: type[Recurrent], grows: bool) -> None:
    layer = kind(8, 5, generator=generator())  # type: ignore[call-arg]
    x = inputs(8).repeat(1, 20, 1)
    state = torch.randn(layer.initial_state(3).shape, generator=generator())
    with torch.no_grad():
        apart = layer(x, state)[1] - layer(x)[1]
    ratio = float(apart.norm() / state.norm())
    assert ratio == pytest.approx(1, abs=1e-3) if grows else ratio < 0.5
