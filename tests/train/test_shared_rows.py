"""A normed MLP on rows gives the gradients of autograd on pairs, in float64; tolerances as in test_fast_gradient."""

from __future__ import annotations

import torch
from torch import nn

from exactstate.nn.mlp import GatedMLP
from exactstate.train.shared_rows import NormedMLP
from tests.train.test_fast_gradient import CLOSE, Given, Noted, gradients


def test_normed_mlp_backward_is_autograd_pair_by_pair():
    """Rows come in two portions, with dropout; some have several pairs and some none. Gradients are added twice."""
    generator = torch.Generator().manual_seed(0)
    norm, mlp = nn.LayerNorm(8).double(), GatedMLP(8, 12, generator=generator).double()
    with torch.no_grad():
        for parameter in (*norm.parameters(), *mlp.parameters()):
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 4)
    mlp.dropout = Noted(torch.Generator().manual_seed(1))
    x = torch.randn(7, 8, generator=generator, dtype=torch.float64)
    row = torch.tensor([6, 0, 0, 3, 5, 6, 6, 1])
    grad = torch.randn(len(row), 8, generator=generator, dtype=torch.float64)
    rows = NormedMLP(norm, mlp)
    with torch.no_grad():
        y = torch.cat([rows(part, True) for part in x.split([4, 3])])
        found = [rows.backward(row, grad) for _ in range(2)]
    quickly = gradients(nn.ModuleList([norm, mlp]))

    mlp.dropout = Given(torch.cat(mlp.dropout.kept)[row])
    nn.ModuleList([norm, mlp]).zero_grad(set_to_none=True)
    entered = x[row].requires_grad_()
    wanted = mlp(norm(entered))
    wanted.backward(grad)
    torch.testing.assert_close(y[row], wanted.detach(), **CLOSE)
    torch.testing.assert_close(found[0], entered.grad, **CLOSE)
    assert torch.equal(found[0], found[1])
    for name, gradient in gradients(nn.ModuleList([norm, mlp])).items():
        torch.testing.assert_close(quickly[name], 2 * gradient, **CLOSE)


def test_normed_mlp_without_learning_keeps_nothing():
    norm, mlp = nn.LayerNorm(8), GatedMLP(8, 12)
    rows, x = NormedMLP(norm, mlp), torch.randn(5, 8)
    assert torch.equal(rows(x, False), mlp(norm(x)))
    assert not rows.kept
