"""Noise from counters: the same in torch and in the kernels, distributed as it should be, never infinite."""

from __future__ import annotations

import math

import pytest
import torch

from exactstate import native
from exactstate.ops.gumbel import _natural_log, gumbel, uniform_bits


def compiled_gumbel(seed, segments, entries):
    rows = int(segments[:, 1].sum())
    noise = torch.full((rows, entries), float("nan"))
    native.library().exactstate_gumbel(
        segments.data_ptr(), len(segments), entries, seed & (2**64 - 1), noise.data_ptr()
    )
    return noise


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63 - 1, -(2**63), 123456789])
def test_the_kernels_make_the_same_noise_to_the_last_bit(seed):
    segments = torch.tensor([[0, 70, 0, 3, 7, 0], [70, 0, 0, 1, 1, 70], [70, 33, 0, 2**40, 2**33, 70]])
    sequence = torch.tensor([3] * 70 + [2**40] * 33)
    step = torch.cat([torch.arange(7, 77), torch.arange(2**33, 2**33 + 33)])
    assert torch.equal(compiled_gumbel(seed, segments, 37), gumbel(torch.tensor(seed), sequence, step, 37))


def test_the_noise_is_gumbel():
    """Kolmogorov-Smirnov distance of a million draws; 1.95 / sqrt(n) is exceeded once in a thousand such tests."""
    n = 1_000_000
    draws = gumbel(torch.tensor(5), torch.zeros(1000, dtype=torch.int64), torch.arange(1000), 1000).flatten().double()
    cumulative = (-(-draws.sort().values).exp()).exp()
    distance = (cumulative - (torch.arange(n, dtype=torch.float64) + 0.5) / n).abs().max() + 0.5 / n
    assert distance < 1.95 / math.sqrt(n)


@pytest.mark.parametrize("axis", ["seed", "sequence", "step", "entry"])
def test_neighbours_are_not_correlated(axis):
    n = 200_000
    zero, count = torch.zeros(n, dtype=torch.int64), torch.arange(n)
    uniform = {
        "seed": lambda: torch.cat([uniform_bits(torch.tensor(s), zero[:1], zero[:1], 100)[0] for s in range(n // 100)]),
        "sequence": lambda: uniform_bits(torch.tensor(1), count, zero, 1)[:, 0],
        "step": lambda: uniform_bits(torch.tensor(1), zero, count, 1)[:, 0],
        "entry": lambda: uniform_bits(torch.tensor(1), zero[:1], zero[:1], n)[0],
    }[axis]().double()
    centred = uniform - uniform.mean()
    for lag in (1, 2, 3, 8, 100):
        correlation = (centred[:-lag] * centred[lag:]).mean() / centred.var()
        assert abs(float(correlation)) < 4.5 / math.sqrt(n), (axis, lag)


def test_neighbouring_seeds_are_not_shifted_copies():
    count, zero = torch.arange(100), torch.zeros(100, dtype=torch.int64)
    one, other = (set(uniform_bits(torch.tensor(s), count, zero, 10).flatten().tolist()) for s in (4, 5))
    assert len(one & other) <= 1  # two sets of a thousand 32-bit numbers


def test_every_bit_is_fair():
    bits = uniform_bits(torch.tensor(9), torch.arange(500), torch.arange(500), 400).flatten()
    for place in range(32):
        share = ((bits >> place) & 1).double().mean()
        assert abs(float(share) - 0.5) < 4.5 * 0.5 / math.sqrt(bits.numel()), place


def test_the_ends_of_the_uniform_are_finite():
    """The smallest and the largest midpoint: where a careless 24th bit would round to 1 and its logarithm to 0."""
    ends = (torch.tensor([0.0, 2.0**23 - 1]) + 0.5) * 2.0**-23
    assert float(ends[0]) > 0
    assert float(ends[1]) < 1
    noise = -_natural_log(-_natural_log(ends))
    assert torch.isfinite(noise).all()
    wanted = -(-ends.double().log()).log()
    torch.testing.assert_close(noise.double(), wanted, rtol=1e-6, atol=1e-6)


def test_the_logarithm_is_accurate():
    """To two units in the last place (2^-23 each) over everything that the noise can ask of it."""
    x = torch.cat([torch.logspace(-7.2, 1.3, 200_001), 1 - torch.logspace(-7.2, -0.5, 100_001)]).float()
    x = x[(x > 0) & (x != 1)]
    exact = x.double().log()
    assert float(((_natural_log(x).double() - exact) / exact).abs().max()) < 2 * 2**-23
