"""Agreement separates heads that follow the state from those that do not; renewal changes only the given heads."""

from __future__ import annotations

import pytest
import torch

from exactstate.errors import InvalidInput
from exactstate.nn import NFSM, agreement, renew
from exactstate.ops.tables import entry_offsets


def test_agreement_of_heads_whose_relation_to_the_label_is_known() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 6, (5_000,), generator=generator)
    noise = torch.randint(0, 3, (5_000,), generator=generator)
    half = torch.where(torch.rand(5_000, generator=generator) < 0.5, labels % 3, noise)
    states = torch.stack([labels % 3, labels, noise, torch.zeros_like(labels), half], 1)
    found = agreement(states, labels)
    assert found[:2].tolist() == [1.0, 1.0]
    assert float(found[2].abs()) < 0.05
    assert float(found[3]) == 0.0
    assert float(found[4]) == pytest.approx(0.25, abs=0.05)  # both words of a pair follow the label


def test_agreement_of_few_words() -> None:
    assert agreement(torch.tensor([[1, 0], [1, 1]]), torch.tensor([4, 4])).tolist() == pytest.approx([0.0, -1.0])
    assert agreement(torch.tensor([[1], [1]]), torch.tensor([4, 5])).isnan().all()


@pytest.mark.parametrize(
    ("states", "labels"),
    [(torch.zeros(3, 2), torch.zeros(3).long()), (torch.zeros(3, 2).long(), torch.zeros(2).long())],
)
def test_agreement_refuses_what_it_cannot_compare(states: torch.Tensor, labels: torch.Tensor) -> None:
    with pytest.raises(InvalidInput, match="the indices after N words"):
        agreement(states, labels)


def test_renew_changes_the_given_heads_only_and_clears_their_moments() -> None:
    layer = NFSM(6, (3, 4, 2), remember=1.5, generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.AdamW(layer.parameters(), 1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        layer(torch.randn(2, 9, 6))[0].square().sum().backward()
        optimizer.step()
    before = {name: part.detach().clone() for name, part in layer.named_parameters()}
    renew(layer, [1], optimizer, torch.Generator().manual_seed(1))
    at, end, rows = entry_offsets(layer.heads)[1], entry_offsets(layer.heads)[2], slice(3, 7)
    for name, inside in (("weight", slice(at, end)), ("bias", slice(at, end)), ("values", rows)):
        now, old = getattr(layer, name).detach(), before[name]
        assert not torch.equal(now[inside], old[inside])
        outside = torch.ones(len(now), dtype=torch.bool)
        outside[inside] = False
        assert torch.equal(now[outside], old[outside])
        moments = optimizer.state[getattr(layer, name)]["exp_avg_sq"]
        assert not moments[inside].any()
        assert moments[outside].any()
    assert torch.equal(layer.bias[at:end].view(4, 4), 1.5 * torch.eye(4))
    assert float(layer.weight.detach()[at:end].abs().max()) <= 2 * 6**-0.5
    assert torch.equal(layer.out_proj.weight, before["out_proj.weight"])
    renew(layer, [1], remember=0.25)
    assert torch.equal(layer.bias[at:end].view(4, 4), 0.25 * torch.eye(4))


def test_renew_with_the_same_generator_draws_the_same() -> None:
    layers = [NFSM(4, (3, 3), generator=torch.Generator().manual_seed(0)) for _ in range(2)]
    for layer in layers:
        renew(layer, [0, 1], generator=torch.Generator().manual_seed(5))
    assert all(map(torch.equal, *(list(layer.parameters()) for layer in layers)))


def test_renew_refuses_heads_that_are_not_there() -> None:
    with pytest.raises(InvalidInput, match="heads 0 to 1; got 2"):
        renew(NFSM(4, (3, 3)), [2])


def test_renew_of_a_layer_with_a_dictionary_keeps_the_mixture_and_the_other_heads() -> None:
    layer = NFSM(6, (3, 4), dictionary=2)
    before = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    renew(layer, [0])
    now = layer.state_dict()
    assert torch.equal(now["weight"][9:], before["weight"][9:])
    assert not torch.equal(now["weight"][:9], before["weight"][:9])
    assert float(now["weight"][:9].abs().max()) <= 2 * 2**-0.5
    assert torch.equal(now["mix_proj.weight"], before["mix_proj.weight"])
