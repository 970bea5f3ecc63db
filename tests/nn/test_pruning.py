"""Pruning: a smaller layer computes what the larger one does, less what was removed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.nn import NFSM
from exactstate.nn.pruning import (
    PruneStep,
    head_contributions,
    head_means,
    prune,
    prune_indices,
    reachable_indices,
    remove_heads,
    select_indices,
)
from tests.conftest import SAMPLED

CLOSE = {"rtol": 0, "atol": 1e-12}
"""float64; the sums over heads are taken in another order."""


def make(heads: tuple[int, ...] = (4, 3, 5), seed: int = 0, **settings: object) -> NFSM:
    generator = torch.Generator().manual_seed(seed)
    return NFSM(6, heads, generator=generator, **{**SAMPLED, **settings}).double().eval()


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


class Model(nn.Module):
    """Two layers with something between them, as other people's models have."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.between, self.second = make(seed=2), nn.Linear(6, 6).double(), make((2, 3), seed=3)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.first(x)
        return self.second(torch.tanh(self.between(y)))[0]


def test_select_indices_of_whole_heads_removes_the_contribution_of_the_others() -> None:
    layer, x = make(), draw(2, 30, 6)
    smaller = select_indices(layer, [range(4), (), range(5)], offset=torch.ones(6).double())
    states, contributions = layer.states(x), head_contributions(layer)
    expected = layer(x)[0] - contributions[1][states[..., 1]] + 1
    assert smaller.heads == (4, 5)
    torch.testing.assert_close(smaller(x)[0], expected, **CLOSE)
    assert torch.equal(smaller.states(x), states[..., [0, 2]])


@pytest.mark.parametrize("dictionary", [None, 3])
def test_select_indices_keeps_the_configuration(dictionary: int | None) -> None:
    layer = make(initial_state=(1, 2, 0), temperature=1.5, noise=False, dictionary=dictionary)
    smaller = select_indices(layer, [(3, 1), (2,), (0, 4)])
    assert smaller.config.initial_state == (1, 0, 0)
    assert smaller.heads == (2, 1, 2)
    assert (smaller.config.temperature, smaller.config.noise, smaller.config.dictionary) == (1.5, False, dictionary)
    assert smaller.weight.dtype == torch.float64
    x = draw(1, 4, 6)
    kept = layer.logits(x)[0][..., [3, 1], :][..., [3, 1]]
    torch.testing.assert_close(smaller.logits(x)[0], kept, **CLOSE)


def test_select_indices_refuses_what_it_cannot_keep() -> None:
    with pytest.raises(InvalidInput, match="one list of indices per head; got 2 for 3 heads"):
        select_indices(make(), [(0,), (0,)])
    with pytest.raises(InvalidInput, match=r"indices below 4, the initial one \(0\) among them; got \[1\]"):
        select_indices(make(), [(1,), (0,), (0,)])


def test_reachable_indices_is_a_closure_over_the_tables() -> None:
    layer, rows = make((5, 5), seed=4), draw(2, 6)
    for reached, table, start in zip(
        reachable_indices(layer, rows), layer.tables(rows[None]), layer.config.initial_state, strict=True
    ):
        words = [[start]]
        for _ in range(5):
            words.append(sorted({int(table[0, a, k]) for k in words[-1] for a in range(2)} | set(words[-1])))
        assert reached == words[-1]


@pytest.mark.parametrize("seed", range(5))
def test_prune_indices_is_the_same_function_of_these_inputs(seed: int) -> None:
    layer, rows = make((6, 2, 4), seed=seed), draw(2, 6)
    smaller = prune_indices(layer, rows)
    index = torch.randint(2, (3, 60), generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(smaller((rows, index))[0], layer((rows, index))[0], **CLOSE)
    assert all(len(reached) == d for reached, d in zip(reachable_indices(smaller, rows), smaller.heads, strict=True))


def test_prune_indices_of_a_layer_that_never_moves_leaves_one_head() -> None:
    layer, rows = make(remember=100.0), draw(2, 6)
    smaller = prune_indices(layer, rows)
    assert smaller.heads == (1,)
    torch.testing.assert_close(smaller(rows[None])[0], layer(rows[None])[0], **CLOSE)


def test_head_means_are_averages_over_all_steps() -> None:
    model, x = Model(), draw(2, 20, 6)
    means = head_means(model, x)
    assert set(means) == {"first", "second"}
    states = model.first.states(x).flatten(0, 1)
    for h, part in enumerate(head_contributions(model.first)):
        torch.testing.assert_close(means["first"][h], part[states[:, h]].mean(0), **CLOSE)


def test_remove_heads_leaves_the_model_as_it_is() -> None:
    model, x = Model(), draw(2, 20, 6)
    before = model(x)
    smaller = remove_heads(model, [("first", 1), ("second", 0)])
    assert (smaller.first.heads, smaller.second.heads) == ((4, 5), (3,))
    assert torch.equal(model(x), before)
    assert not torch.equal(smaller(x), before)
    with pytest.raises(InvalidInput, match="'second' would be left without heads; keep one of its 2"):
        remove_heads(model, [("second", 0), ("second", 1)])


def test_prune_finds_the_head_that_matters() -> None:
    layer, x = make((4, 4, 4, 4)), draw(4, 30, 6)
    with torch.no_grad():  # all but head 2 say nothing
        for h in (0, 1, 3):
            layer.out_proj.weight[:, h * layer.value_width : (h + 1) * layer.value_width] = 0
    wanted = layer(x)[0]

    def loss(model: NFSM) -> float:
        return float((model(x)[0] - wanted).square().mean().detach())

    steps: list[PruneStep] = []
    smaller = prune(layer, x, loss=loss, accept=lambda model: loss(model) < 1e-20, watch=steps.append)
    assert smaller.heads == (4,)
    torch.testing.assert_close(smaller(x)[0], wanted, **CLOSE)
    assert torch.equal(smaller.weight, layer.weight[32:48])
    assert [step.accepted for step in steps][-1]
    assert steps[-1].heads == 1


def test_prune_keeps_what_the_test_does_not_let_go() -> None:
    model, x = Model(), draw(2, 20, 6)
    wanted, steps = model(x), []

    def loss(smaller: Model) -> float:
        return float((smaller(x) - wanted).square().mean().detach())

    kept = prune(model, x, loss=loss, accept=lambda smaller: loss(smaller) == 0, watch=steps.append, max_failures=2)
    assert (kept.first.heads, kept.second.heads) == (model.first.heads, model.second.heads)
    assert not any(step.accepted for step in steps)


def test_prune_returns_a_copy_where_nothing_can_go() -> None:
    layer = NFSM(width=4, heads=(2, 2))
    kept = prune(layer, torch.randn(2, 5, 4), loss=lambda _: 0.0, accept=lambda _: False)
    assert kept is not layer
    assert kept.heads == layer.heads


def test_prune_fine_tunes_what_is_not_accepted_at_once() -> None:
    layer, x, tuned = make((3, 3)), draw(2, 10, 6), []

    def fine_tune(smaller: NFSM) -> None:
        tuned.append(smaller)

    smaller = prune(layer, x, loss=lambda model: 0.0, accept=lambda model: model in tuned, fine_tune=fine_tune)
    assert smaller.heads == (3,)
    assert smaller is tuned[-1]


def test_prune_refuses_models_without_heads_and_impossible_settings() -> None:
    with pytest.raises(InvalidInput, match="no NFSM layer in this Linear"):
        prune(nn.Linear(2, 2), draw(1, 2), loss=lambda model: 0.0, accept=lambda model: True)
    with pytest.raises(InvalidConfig, match=r"share lies in \[0, 1\) and max_failures is at least 1; got 1 and 3"):
        prune(make(), draw(1, 2, 6), loss=lambda model: 0.0, accept=lambda model: True, share=1)
