"""Near ties: `reference` and `cpu` choose the same index to the last bit, `tree` within the rounding of a product.

Layers are built so that two logits of every column are equal in real arithmetic and differ only by the order in which
their terms are added.
"""

from __future__ import annotations

import pytest
import torch

from exactstate.nn import NFSM

WIDTH, HEADS = 24, (3, 2)
EPS = torch.finfo(torch.float32).eps


def nearly_tied(seed: int) -> tuple[NFSM, torch.Tensor]:
    """A layer and inputs whose terms are the same for every logit of a head, in different orders."""
    generator = torch.Generator().manual_seed(seed)
    layer = NFSM(WIDTH, HEADS, generator=generator, backend="reference").eval()
    x = torch.randn(1, 1, generator=generator).expand(2, WIDTH)[None].repeat(1, 8, 1).contiguous()
    terms = torch.randn(WIDTH, generator=generator)
    with torch.no_grad():
        for row in range(len(layer.weight)):
            layer.weight[row] = terms[torch.randperm(WIDTH, generator=generator)]
        layer.bias.zero_()
    return layer, x * (1 + torch.rand(1, 16, 1, generator=generator))


def tables_on(layer: NFSM, x: torch.Tensor, backend: str) -> torch.Tensor:
    layer.backend = backend
    return torch.cat(layer.tables(x), dim=-1)


def test_tables_at_near_ties() -> None:
    differing = 0
    for seed in range(40):
        layer, x = nearly_tied(seed)
        reference = tables_on(layer, x, "reference")
        assert torch.equal(tables_on(layer, x, "cpu"), reference)
        tree = tables_on(layer, x, "tree")
        differing += int(not torch.equal(tree, reference))
        # where `tree` differs, the two logits differ by less than two sums of WIDTH + 1 terms may be rounded by
        layer.backend = "reference"
        for head, (logits, d) in enumerate(zip(layer.logits(x), HEADS, strict=True)):
            at = sum(HEADS[:head])
            mine, other = reference[..., at : at + d, None], tree[..., at : at + d, None]
            scores = logits.transpose(-1, -2).double()
            lead = scores.gather(-1, mine) - scores.gather(-1, other)
            bound = 2 * (WIDTH + 1) * EPS * float(layer.weight.detach().abs().sum(1).max() * x.abs().max())
            assert float(lead.detach().max()) <= bound
    assert differing > 0, "the claim about `tree` would be too careful if it never differed"


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_states_at_near_ties_do_not_depend_on_the_call(backend: str) -> None:
    """One long call, two calls and single steps: the same states, although every choice is a near tie."""
    for seed in range(10):
        layer, x = nearly_tied(seed)
        layer.backend = backend
        with torch.no_grad():
            whole = layer(x)[1]
            _, state = layer(x[:, :5])
            assert torch.equal(layer(x[:, 5:], state)[1], whole)
            state = None
            for t in range(x.shape[1]):
                _, state = layer.step(x[:, t], state)
            assert torch.equal(state, whole)
