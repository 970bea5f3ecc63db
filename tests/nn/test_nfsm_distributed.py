"""Models with NFSM layers under DDP, FSDP2, activation checkpointing and compilation, on two gloo processes."""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from exactstate.nn import NFSM
from tests.ops.ranks import run_ranks

B, L, WIDTH = 4, 11, 6


class Tagger(nn.Module):
    """An embedding, an NFSM layer, a read-out."""

    def __init__(self, process_group: Any = None) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.embedding = nn.Embedding(5, WIDTH)
        self.block = NFSM(WIDTH, (4, 3), generator=generator, process_group=process_group)
        self.readout = nn.Linear(WIDTH, 3)
        with torch.no_grad():
            for parameter in (self.embedding.weight, *self.readout.parameters()):
                parameter.copy_(torch.randn(parameter.shape, generator=generator))

    def forward(self, words: Tensor, seed: int | Tensor) -> Tensor:
        return self.readout(self.block(self.embedding(words), seed=seed)[0])


def words() -> Tensor:
    return torch.randint(0, 5, (B, L), generator=torch.Generator().manual_seed(3))


def gradients(model: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    loss.backward()
    found = {}
    for name, parameter in model.named_parameters():
        grad = parameter.grad
        assert grad is not None, name
        found[name.removeprefix("module.")] = (grad.full_tensor() if hasattr(grad, "full_tensor") else grad).clone()  # type: ignore[operator]
    return found


def loss_of(model: nn.Module, rows: Tensor) -> Tensor:
    return model(rows, torch.tensor(2)).square().mean()


def data_parallel(rank: int, world: int) -> dict[str, dict[str, Tensor]]:
    """The gradients of a batch whose halves lie on two ranks, by every wrapper; averaged over ranks."""
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.checkpoint import checkpoint

    warnings.simplefilter("ignore")
    mine = words().chunk(world)[rank]
    found = {}
    ddp = DistributedDataParallel(Tagger())
    found["DDP"] = gradients(ddp, loss_of(ddp, mine))
    sharded = Tagger()
    fully_shard(sharded.block)
    fully_shard(sharded)
    found["FSDP2"] = gradients(sharded, loss_of(sharded, mine))
    inner = Tagger()
    remat = DistributedDataParallel(inner)
    forward = inner.block.forward
    inner.block.forward = lambda *a, **k: checkpoint(forward, *a, use_reentrant=False, **k)  # type: ignore[method-assign]
    found["DDP, checkpointed"] = gradients(remat, loss_of(remat, mine))
    compiled = DistributedDataParallel(Tagger())
    whole = torch.compile(compiled, backend="aot_eager")
    found["DDP, compiled"] = gradients(compiled, loss_of(whole, mine))
    return found


# float32 sums of a few hundred terms, taken in another order
TOLERANCE = {"atol": 1e-6, "rtol": 1e-5}


def test_data_parallel_gradients_are_the_mean_over_ranks() -> None:
    ranks = run_ranks(2, data_parallel)
    halves = [gradients(model := Tagger(), loss_of(model, half)) for half in words().chunk(2)]
    for name in ranks[0]:
        for key in halves[0]:
            wanted = (halves[0][key] + halves[1][key]) / 2
            for found in ranks:
                torch.testing.assert_close(
                    found[name][key], wanted, **TOLERANCE, msg=lambda text, at=f"{name} {key}": f"{at}: {text}"
                )


def test_data_parallel_without_the_other_rank_differs() -> None:
    """The comparison notices ranks that do not exchange their gradients."""
    halves = [gradients(model := Tagger(), loss_of(model, half)) for half in words().chunk(2)]
    assert not torch.allclose(halves[0]["block.weight"], (halves[0]["block.weight"] + halves[1]["block.weight"]) / 2)


def sequence_parallel_compiled(rank: int, world: int) -> dict[str, dict[str, Tensor]]:
    """One batch, the sequences split over ranks, eager and compiled: gradients to be summed over ranks."""
    warnings.simplefilter("ignore")
    mine = words().tensor_split(world, 1)[rank]
    found = {}
    for name in ("eager", "compiled"):
        model = Tagger(dist.group.WORLD)
        called = model if name == "eager" else torch.compile(model, backend="aot_eager", fullgraph=True)
        found[name] = gradients(model, called(mine, torch.tensor(2)).square().sum())
    return found


def test_sequence_parallel_model_eager_and_compiled() -> None:
    ranks = run_ranks(2, sequence_parallel_compiled)
    model = Tagger()
    wanted = gradients(model, model(words(), torch.tensor(2)).square().sum())
    for name in ("eager", "compiled"):
        for key, value in wanted.items():
            found = ranks[0][name][key] + ranks[1][name][key]
            torch.testing.assert_close(
                found, value, atol=1e-4, rtol=1e-5, msg=lambda text, at=f"{name} {key}": f"{at}: {text}"
            )
