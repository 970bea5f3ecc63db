"""Counters: rounded rotations against slow loops, cycles of monotone maps, integers that wrap, tables."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch

from paper.theory import counting
from paper.theory.counting import by_scan, float_steps, integer_rows, longest_cycle, step_by_step, table_rows, turns


def slow(n: int, format: str, limit: int) -> int | None:
    """The first wrong step of the word 1 1 1, one rounded operation at a time."""
    dtype = counting.FORMATS[format]
    c, s = turns(n, format)[1]
    x, y = torch.tensor(1.0, dtype=dtype), torch.tensor(0.0, dtype=dtype)
    corners = np.exp(2j * np.pi * np.arange(n) / n)
    for step in range(1, limit + 1):
        x, y = (c * x) - (s * y), (s * x) + (c * y)
        if np.abs(corners - complex(float(x), float(y))).argmin() != step % n:
            return step
    return None


@pytest.mark.parametrize("format", ["bf16", "fp16"])
def test_step_by_step_equals_a_loop(format: str) -> None:
    moduli = (3, 7, 9, 11)
    found = step_by_step(moduli, format, 700)
    for n, (first, by) in zip(moduli, found, strict=True):
        assert first == slow(n, format, 700), by


def test_step_by_step_finds_the_cycle_that_it_claims() -> None:
    ((first, by),) = step_by_step((7,), "bf16", 500)
    assert (first, by) == (None, "cycle of 7")
    c, s = turns(7, "bf16")[1]
    x, y = torch.tensor(1.0, dtype=torch.bfloat16), torch.tensor(0.0, dtype=torch.bfloat16)
    path = []
    for _ in range(500):
        x, y = c * x - s * y, s * x + c * y
        path.append((float(x), float(y)))
    assert path[-1] == path[-8]
    assert len(set(path[-7:])) == 7


def test_step_by_step_without_a_cycle_says_how_far_it_came() -> None:
    ((first, by),) = step_by_step((5,), "fp16", 8)
    assert first is None
    assert by == "right for 8 steps"


def test_by_scan_in_fine_arithmetic_counts_and_in_coarse_does_not() -> None:
    letters = np.random.default_rng(0).integers(0, 7, (300, 2))
    assert by_scan(letters, 7, "fp64").tolist() == [301, 301]
    ones = np.ones((300, 1), np.int64)
    (first,) = by_scan(ones, 7, "bf16")
    assert first < 291  # where it fails with an exact state


def test_by_scan_is_the_product_in_a_tree() -> None:
    """Against products of single numbers: a prefix twice as wide is the product of two prefixes."""
    cosine, sine = turns(9, "bf16")[1]
    found = {(t, 1): (cosine, sine) for t in range(200)}
    width = 1
    while width < 200:
        for t in range(200):
            late, early = found[t, width], found.get((t - width, width))
            found[t, 2 * width] = late if early is None else (
                late[0] * early[0] - late[1] * early[1], late[0] * early[1] + late[1] * early[0]
            )  # fmt: skip
        width *= 2
    corners = np.exp(2j * np.pi * np.arange(9) / 9)
    states = [complex(*map(float, found[t, width])) for t in range(200)]
    wrong = [step for step, h in enumerate(states, 1) if np.abs(corners - h).argmin() != step % 9]
    assert by_scan(np.ones((200, 1), np.int64), 9, "bf16").tolist() == [wrong[0]]


def test_closed_form_is_the_step_at_which_the_angle_is_off_by_half_a_corner() -> None:
    rows = {(row["format"], row["modulus"]): row for row in counting.rotation_rows((2, 7, 8), limit=8)
            if row["rounded"] == "weights"}  # fmt: skip
    assert rows["bf16", 7]["first_wrong"] == 291
    assert rows["fp16", 7]["first_wrong"] == 4797
    assert rows["fp64", 2]["by"] == "weights are exact"
    row = rows["fp16", 8]  # its angle is exact, its norm is not
    assert row["by"] == "underflow"
    with localcontext() as context:
        context.prec = 40
        norm = (2 * Decimal(float(turns(8, "fp16")[1, 0])) ** 2).sqrt()
        smallest = Decimal(torch.finfo(torch.float16).smallest_normal)
        assert norm ** row["first_wrong"] < smallest <= norm ** (row["first_wrong"] - 2)


@pytest.mark.parametrize(("weight", "longest"), [(0.75, 1), (1.0, 1), (-1.0, 2), (-0.6875, 2)])
def test_longest_cycle_of_a_rounded_affine_step(weight: float, longest: int) -> None:
    dtype = torch.float8_e4m3fn
    values = torch.arange(256, dtype=torch.uint8).view(dtype).float()
    values = values[values.isfinite()].unique()
    steps = float_steps(torch.tensor(weight), values, dtype)
    assert longest_cycle(steps) == longest
    monotone = bool((steps.diff(dim=1) >= 0).all())
    assert monotone == (weight > 0)


def test_longest_cycle_of_a_permutation() -> None:
    steps = torch.tensor([[1, 2, 0, 4, 3, 3, 6]])
    assert longest_cycle(steps) == 3
    assert longest_cycle(torch.zeros(1, 7, dtype=torch.int64)) == 1


def test_integer_rows_are_right_where_the_modulus_divides_a_power_of_two() -> None:
    assert {row["modulus"]: row["first_wrong"] for row in integer_rows((2, 3, 6, 16))} == {
        2: None,
        3: 256,
        6: 256,
        16: None,
    }
    assert integer_rows((12,), bits=4)[0]["first_wrong"] == 16


def test_table_rows_are_never_wrong() -> None:
    assert {row["first_wrong"] for row in table_rows(steps=500)} == {None}
