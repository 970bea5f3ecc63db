"""Sequences split over gloo processes: states bit for bit those of one process, gradients to rounding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.nn import NFSM
from exactstate.ops import sequence_parallel
from exactstate.ops.sequence_parallel import exchanged_bytes, group_name
from tests.ops.ranks import run_ranks

# float64 sums of a few hundred terms of order one to ten, taken in another order
TOLERANCE = {"atol": 1e-11, "rtol": 1e-11}
B, L, WIDTH, HEADS = 3, 23, 6, (4, 3)


def cuts_of(world: int, length: int) -> list[int]:
    """Ragged stretches: the second of three or more ranks has no rows."""
    return [0, *([length // 3] * min(2, world - 1)), *range(length // 3 + 2, length // 3 + world - 1), length]


def draw() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        "x": torch.randn(B, L, WIDTH, dtype=torch.float64, generator=generator),
        "packed": torch.randn(B * L, WIDTH, dtype=torch.float64, generator=generator),
        "resets": torch.rand(B, L, generator=generator) < 0.1,
        "start": torch.tensor([[1, 2], [3, 0], [0, 1]]),
    }


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "lengths and resets": {"lengths": [L, 2, 11], "resets": True},
    "chunks": {"chunk": 5},
    "packed": {"cu_seqlens": [0, 4, 40, B * L]},
    "evaluation": {"train": False},
    "index": {"index": True},
}


def one_pass(case: dict[str, Any], begin: int, end: int, last: bool, group: Any, backend: str) -> dict[str, Tensor]:
    """Output, final state and gradients of the rows begin .. end; the loss uses the final state on the last rank."""
    drawn, packed = draw(), "cu_seqlens" in case
    layer = NFSM(
        WIDTH, HEADS, initial_state=(2, 1), chunk=case.get("chunk", 0), process_group=group, backend=backend,
        generator=torch.Generator().manual_seed(1),
    ).double().train(case.get("train", True))  # fmt: skip
    x = (drawn["packed"][begin:end] if packed else drawn["x"][:, begin:end]).clone()
    given: Any = x.requires_grad_()
    if "index" in case:
        x = drawn["x"][0].clone().requires_grad_()
        given = (x, torch.randint(0, L, (B, L), generator=torch.Generator().manual_seed(5))[:, begin:end])
    start = torch.cat(
        [torch.nn.functional.one_hot(drawn["start"][:, h], d) for h, d in enumerate(HEADS)], dim=1
    ).double().requires_grad_()  # fmt: skip
    where = {name: torch.tensor(case[name]) for name in ("lengths", "cu_seqlens") if name in case}
    if "resets" in case:
        where["resets"] = drawn["resets"][:, begin:end]
    y, final = layer(given, start, seed=7, carry_gradient=True, **where)
    loss = (y**2).sum()
    if last:
        loss = loss + (final * torch.arange(sum(HEADS))).sum()
    parameters = dict(layer.named_parameters())
    grads = torch.autograd.grad(loss, [x, start, *parameters.values()])
    return {"y": y.detach(), "final": final.detach(), **dict(zip(["x", "start", *parameters], grads, strict=True))}


def on_ranks(rank: int, world: int, backend: str) -> dict[str, dict[str, Tensor]]:
    found = {}
    for name, case in CASES.items():
        cuts = cuts_of(world, B * L if "cu_seqlens" in case else L)
        found[name] = one_pass(case, cuts[rank], cuts[rank + 1], rank == world - 1, dist.group.WORLD, backend)
    return found


@pytest.mark.parametrize(("world", "backend"), [(1, "reference"), (2, "cpu"), (3, "tree"), (4, "cpu")])
def test_sequence_parallel_is_one_process(world: int, backend: str) -> None:
    ranks = run_ranks(world, on_ranks, backend)
    for name, case in CASES.items():
        packed = "cu_seqlens" in case
        wanted = one_pass(case, 0, B * L if packed else L, True, None, backend)
        parts = [found[name] for found in ranks]
        along = 0 if packed else 1
        assert torch.equal(torch.cat([part["y"] for part in parts], along), wanted["y"]), name
        assert all(torch.equal(part["final"], wanted["final"]) for part in parts), name
        for key in wanted.keys() - {"y", "final"}:
            if key == "x" and "index" not in case:
                found = torch.cat([part["x"] for part in parts], along)
            else:
                found = torch.stack([part[key] for part in parts]).sum(0)
            torch.testing.assert_close(
                found, wanted[key], **TOLERANCE, msg=lambda text, at=f"{name} {key}": f"{at}: {text}"
            )


def wrong_table(rank: int, world: int) -> Tensor:
    """A pass in which rank 0 sends a table that is wrong in one entry."""
    exchange = sequence_parallel._all_gather

    def corrupted(own: Tensor, group: str) -> Tensor:
        if rank == 0 and own.dtype == torch.uint8:
            own = (own + 1) % 3
        return exchange(own, group)

    sequence_parallel._all_gather = corrupted
    cuts = cuts_of(world, L)
    return one_pass({}, cuts[rank], cuts[rank + 1], False, dist.group.WORLD, "cpu")["y"]


def test_sequence_parallel_with_a_wrong_table_is_noticed() -> None:
    found = torch.cat(run_ranks(2, wrong_table), 1)
    assert not torch.equal(found, one_pass({}, 0, L, False, None, "cpu")["y"])


def counted(rank: int, world: int) -> list[int]:
    layer = NFSM(WIDTH, HEADS, process_group=dist.group.WORLD, backend="cpu")
    y, _ = layer(torch.zeros(B, 5, WIDTH), seed=0)
    forward = sequence_parallel.traffic.bytes
    y.sum().backward()
    return [forward, sequence_parallel.traffic.bytes - forward]


def test_sequence_parallel_traffic_is_what_the_formula_says() -> None:
    wanted = exchanged_bytes(B, HEADS, 2, WIDTH)
    assert run_ranks(2, counted) == [[wanted["forward"], wanted["backward"]]] * 2
    assert wanted["forward"] == 3 * 8 + 8


def test_group_name_refuses_a_mesh_of_two_dimensions() -> None:
    class Mesh:
        ndim = 2

        def get_group(self) -> None: ...

    with pytest.raises(InvalidConfig, match=r"one dimension of a device mesh; got 2: pass mesh\['name'\]"):
        group_name(Mesh())
    assert group_name(None) == ""


def test_step_refuses_a_process_group() -> None:
    layer = NFSM(WIDTH, HEADS)
    layer._group = "some"
    with pytest.raises(InvalidInput, match="a step cannot be split over ranks"):
        layer.step(torch.zeros(1, WIDTH))
