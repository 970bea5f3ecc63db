"""`Adam` and `AdamW`: the steps of torch's, bit for bit, and no compiler is loaded."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn

from exactstate.train.optimizer import Adam, AdamW

PAIRS = {
    "adam": (Adam, torch.optim.Adam, {}),
    "adamw": (AdamW, torch.optim.AdamW, {"weight_decay": 0.1}),
    "fused": (AdamW, torch.optim.AdamW, {"weight_decay": 0.1, "fused": True}),
}


def steps(module: nn.Module, optimizer: torch.optim.Optimizer, count: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        optimizer.zero_grad(set_to_none=True)
        module(torch.randn(7, 5, generator=generator)).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("name", PAIRS)
def test_adam_has_the_bits_of_torch(name: str) -> None:
    ours, theirs, options = PAIRS[name]
    module = nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 3))
    other = copy.deepcopy(module)
    groups = [{"params": module[0].parameters(), "lr": 0.02}, {"params": module[2].parameters()}]
    their_groups = [{"params": other[0].parameters(), "lr": 0.02}, {"params": other[2].parameters()}]
    one, two = ours(groups, 0.01, **options), theirs(their_groups, 0.01, **options)
    steps(module, one, 20, seed=1)
    steps(other, two, 20, seed=1)
    assert all(map(torch.equal, module.state_dict().values(), other.state_dict().values()))
    # a state of theirs goes on in ours
    again = ours([{"params": module[0].parameters()}, {"params": module[2].parameters()}], 0.5, **options)
    again.load_state_dict(copy.deepcopy(two.state_dict()))
    assert again.param_groups[0]["lr"] == 0.02
    steps(module, again, 5, seed=2)
    steps(other, two, 5, seed=2)
    assert all(map(torch.equal, module.state_dict().values(), other.state_dict().values()))


def test_adam_step_builds_no_graph_and_runs_hooks() -> None:
    module, seen = nn.Linear(5, 3), []
    optimizer = AdamW(module.parameters(), 0.1)
    optimizer.register_step_post_hook(lambda *_: seen.append(torch.is_grad_enabled()))
    steps(module, optimizer, 2, seed=0)
    assert len(seen) == 2
    assert module.weight.requires_grad
    assert module.weight.is_leaf
    assert torch.is_grad_enabled()


def test_train_loads_no_compiler() -> None:
    """It took a quarter of the seconds of `exactstate train S3`."""
    program = (
        "import sys, exactstate\n"
        "run = exactstate.train('Z2', recipe='induce', width=16)\n"
        "assert run.certified\n"
        "exactstate.train('Z2', width=32)\n"
        "print([name for name in ('torch._dynamo', 'sympy', 'triton', 'matplotlib') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
