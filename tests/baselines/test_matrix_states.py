"""DeltaProduct and M2RNN: the equations of their papers with whole matrices in NumPy, streaming, resets, spectra."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from exactstate.baselines import M2RNN, DeltaProduct
from exactstate.errors import InvalidConfig

CLOSE = {"rtol": 0, "atol": 1e-11}
"""float64: sums in another order."""
both = pytest.mark.parametrize("kind", [DeltaProduct, M2RNN])


def make(kind: type[DeltaProduct] | type[M2RNN], **settings: object) -> DeltaProduct | M2RNN:
    layer = kind(6, 8, 4, generator=torch.Generator().manual_seed(1), **settings).double()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in layer.parameters():  # biases and norms that are not zeros and ones
            parameter.add_(draw(*parameter.shape, seed=3) / 4)
    return layer


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def silu(x: np.ndarray) -> np.ndarray:
    return x * sigmoid(x)


def weights(layer: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in layer.state_dict().items()}


def output(layer: DeltaProduct | M2RNN, states: list[np.ndarray], queries: np.ndarray) -> np.ndarray:
    """The heads' read-outs, each divided by its root mean square, side by side."""
    w = weights(layer)
    reads = [H.T @ q for H, q in zip(states, queries, strict=True)]
    eps = torch.finfo(torch.float64).eps
    normed = [y / np.sqrt((y**2).mean() + eps) * w["norm.weight"] for y in reads]
    return w["out_proj.weight"] @ np.concatenate(normed)


def deltaproduct(layer: DeltaProduct, x: np.ndarray, states: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """One word, step by step, with the transition matrices in full."""
    w, h, K, n, ys = weights(layer), layer.heads, 4, layer.config.products, []
    for row in x:
        q, k = (silu(w[f"{name}.weight"] @ row).reshape(-1, K) for name in ("q_proj", "k_proj"))
        q, k = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (q, k))
        v = silu(w["v_proj.weight"] @ row).reshape(n, h, -1)
        beta = 2 * sigmoid(w["beta_proj.weight"] @ row + w["beta_proj.bias"]).reshape(n, h)
        k = k.reshape(n, h, K)
        for j in range(n):
            states = np.stack([
                (np.eye(K) - beta[j, i] * np.outer(k[j, i], k[j, i])) @ states[i]
                + beta[j, i] * np.outer(k[j, i], v[j, i])
                for i in range(h)
            ])  # fmt: skip
        ys.append(output(layer, list(states), q))
    return ys, states


def m2rnn(layer: M2RNN, x: np.ndarray, states: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    w, h, ys = weights(layer), layer.heads, []
    for row in x:
        q, k, v = ((w[f"{name}.weight"] @ row).reshape(h, -1) for name in ("q_proj", "k_proj", "v_proj"))
        f = sigmoid(w["forget_proj.weight"] @ row + w["forget_proj.bias"])
        states = np.stack([
            f[i] * states[i] + (1 - f[i]) * np.tanh(states[i] @ w["weight"][i] + np.outer(k[i], v[i])) for i in range(h)
        ])  # fmt: skip
        ys.append(output(layer, list(states), q))
    return ys, states


@pytest.mark.parametrize(("kind", "loop"), [(DeltaProduct, deltaproduct), (M2RNN, m2rnn)])
def test_forward_is_the_loop_over_whole_matrices(kind: type[DeltaProduct], loop: Callable[..., tuple]) -> None:
    layer, x = make(kind, products=3), draw(2, 25, 6)
    state = draw(*layer.initial_state(2).shape, seed=9)
    y, last = layer(x, state)
    for word in range(2):
        wanted, ended = loop(layer, x[word].numpy(), state[word].numpy())
        assert np.allclose(y[word].detach().numpy(), np.stack(wanted), **CLOSE)
        assert np.allclose(last[word].detach().numpy(), ended, **CLOSE)


@both
def test_steps_are_the_pass_and_chunks_have_the_same_gradient(kind: type[DeltaProduct]) -> None:
    layer, chunked, x = make(kind), make(kind, chunk=5), draw(3, 12, 6)
    y, last = layer(x)
    state = None
    for t in range(12):
        step, state = layer.step(x[:, t], state)
        torch.testing.assert_close(step, y[:, t], **CLOSE)
    torch.testing.assert_close(state, last, **CLOSE)
    for one in (layer, chunked):
        one(x)[0].square().sum().backward()
    for ours, theirs in zip(layer.parameters(), chunked.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, **CLOSE)


@both
def test_lengths_hold_the_state_and_resets_begin_anew(kind: type[DeltaProduct]) -> None:
    layer, x = make(kind), draw(2, 9, 6)
    _, last = layer(x, lengths=torch.tensor([9, 4]))
    torch.testing.assert_close(last[1], layer(x[1:, :4])[1][0], **CLOSE)
    resets = torch.zeros(2, 9, dtype=torch.bool)
    resets[0, 3] = True
    torch.testing.assert_close(layer(x, resets=resets)[0][0, 3:], layer(x[:1, 3:])[0][0], **CLOSE)


def test_deltaproduct_reflects_where_beta_is_two() -> None:
    """One Householder matrix with beta near 2 turns the key's direction round: an eigenvalue near -1."""
    layer = make(DeltaProduct, products=1)
    with torch.no_grad():
        layer.v_proj.weight.zero_()
        layer.beta_proj.bias.fill_(40.0)
    x, before = draw(1, 6), draw(1, 2, 4, 4, seed=5)
    _, after = layer.step(x, before)
    k = layer.streams(x)[1].unflatten(-1, (2, 4))
    along = torch.einsum("bhkv,bhk->bhv", before, k)
    torch.testing.assert_close(torch.einsum("bhkv,bhk->bhv", after, k), -along, **CLOSE)
    torch.testing.assert_close(after.norm(dim=2), before.norm(dim=2), **CLOSE)


def test_two_householder_matrices_rotate() -> None:
    """What S3 and A5 ask for and one reflection cannot give: a step that is not its own inverse, of determinant one."""
    layer = make(DeltaProduct, products=2)
    with torch.no_grad():
        layer.v_proj.weight.zero_()
        layer.beta_proj.bias.fill_(40.0)
    _, moved = layer.step(draw(1, 6), torch.eye(4).double().expand(1, 2, 4, 4))
    assert torch.allclose(torch.linalg.det(moved), torch.ones(1, 2).double())
    assert not torch.allclose(moved @ moved, torch.eye(4).double())


def test_m2rnn_states_stay_below_one() -> None:
    _, state = make(M2RNN)(100 * draw(2, 50, 6))
    assert state.abs().max() <= 1


@both
def test_save_pretrained_gives_the_same_layer_back(kind: type[DeltaProduct], tmp_path: Path) -> None:
    layer, x = make(kind, heads=4), draw(1, 4, 6)
    layer.save_pretrained(tmp_path)
    assert torch.equal(kind.from_pretrained(tmp_path)(x)[0], layer(x)[0])


@both
def test_heads_are_square_unless_given(kind: type[DeltaProduct]) -> None:
    assert kind(6, 32, 8).initial_state(1).shape == (1, 4, 8, 8)
    assert kind(6, 6, 8).initial_state(1).shape == (1, 1, 8, 6)
    with pytest.raises(InvalidConfig, match="channels must be a multiple of the heads; got 8 and 3"):
        kind(6, 8, heads=3)
