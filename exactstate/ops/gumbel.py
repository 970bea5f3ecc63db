"""Gumbel noise from counters, defined in plain torch.

Entry e of step t of sequence s has noise that depends on (seed, s, t, e) and on nothing else: no generator is
advanced, nothing is stored, and every chunk, batch and thread sees the same numbers. The compiled kernels perform
the same operations in the same order, so the two agree to the last bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

_WORD = 0xFFFFFFFF


def _signed(value: int) -> int:
    """A 64-bit pattern as the int64 that torch knows."""
    return value - (1 << 64) if value >= 1 << 63 else value


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_MIX = (_signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB))


def _shift_right(z: Tensor, places: int) -> Tensor:
    """A logical shift of 64-bit patterns."""
    return (z >> places) & ((1 << (64 - places)) - 1)


def _scramble(z: Tensor) -> Tensor:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014), modulo 2^64."""
    z = z + _GOLDEN
    z = (z ^ _shift_right(z, 30)) * _MIX[0]
    z = (z ^ _shift_right(z, 27)) * _MIX[1]
    return z ^ _shift_right(z, 31)


def uniform_bits(seed: Tensor, sequence: Tensor, step: Tensor, entries: int) -> Tensor:
    """32 random bits for every (row, entry), as int64: rows x entries."""
    # the seed is scrambled on its own, or seed 1 would be seed 0 with its sequences shifted by one
    key = _scramble(_scramble(_scramble(seed) + sequence) + step)[:, None]
    entry = torch.arange(entries, device=key.device)
    x = (key & _WORD) ^ ((entry * 0x9E3779B9) & _WORD)
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & _WORD
    x = x ^ _shift_right(key, 32)
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & _WORD
    return x ^ (x >> 16)


def gumbel(seed: Tensor, sequence: Tensor, step: Tensor, entries: int) -> Tensor:
    """Standard Gumbel noise, float32, rows x entries; `sequence` and `step` have one number per row.

    U is one of the 2^23 midpoints of (0, 1), each exact in float32, so neither logarithm ever sees 0 or 1.
    """
    bits = uniform_bits(seed, sequence, step, entries)
    uniform = ((bits >> 9).float() + 0.5) * 2.0**-23
    return -_natural_log(-_natural_log(uniform))


def _natural_log(x: Tensor) -> Tensor:
    """log of positive normal float32, one rounding per operation, in the order of the compiled kernel.

    x = 2^k (1 + f) with 1 + f in [sqrt 1/2, sqrt 2], and the series of log(1 + f) fitted by Moshier (Cephes).
    """
    bits = x.view(torch.int32)
    k = (bits - 0x3F3504F3) >> 23
    f = (bits - (k << 23)).view(torch.float32) - 1.0
    square = f * f
    fourth = square * square
    a, b = f * -2.4999993993e-1 + 3.3333331174e-1, f * -1.6668057665e-1 + 2.0000714765e-1
    c, d = f * -1.2420140846e-1 + 1.4249322787e-1, f * -1.1514610310e-1 + 1.1676998740e-1
    p = ((a + b * square) + (c + d * square) * fourth) + (fourth * fourth) * 7.0376836292e-2
    return (f - 0.5 * square + square * f * p) + k.float() * 0.69314718056
