"""Machines that several tests know well."""

from __future__ import annotations

import numpy as np

from exactstate.automata import Moore, from_maps, permutation


def quaternion() -> Moore:
    """The quaternion group of 8 elements by i and j; the state is the product with the last letter on the left."""
    units = ("1", "i", "-1", "-i", "j", "k", "-j", "-k")
    # left multiplication by i and by j, as permutations of the units
    left = (permutation([(0, 1, 2, 3), (4, 5, 6, 7)], 8), permutation([(0, 4, 2, 6), (1, 7, 3, 5)], 8))
    return from_maps(left, element_name=lambda images: units[images[0]])


def permutation_reset(n: int) -> Moore:
    """n states in which every letter permutes or resets: `rotate` (q to q + 1), `swap` (0 with 1), `reset` (to 0)."""
    states = tuple(map(str, range(n)))
    q = np.arange(n)
    tables = np.stack([(q + 1) % n, np.where(q < 2, 1 - q, q), np.zeros_like(q)])
    return Moore(symbols=("rotate", "swap", "reset"), tables=tables, states=states, outputs=states, readout=q)


def modular_arithmetic(modulus: int) -> Moore:
    """A pocket calculator for residues: digits, +, - and *, read from left to right without precedence.

    The state is a value and the pending operator, if any ('3', '3+', '3-', '3*'); the start is '0' and the output is
    the value. A digit is combined with the value by the pending operator; without one it replaces the value. Of several
    operators in a row the last counts. So '2+3*4' gives 20 modulo m, and '-3' gives m - 3.
    """
    residues, pending = np.arange(modulus), ("", "+", "-", "*")
    value = np.tile(residues, len(pending))  # state number: pending * modulus + value
    digits = [
        np.concatenate([np.full(modulus, d), residues + d, residues - d, residues * d]) % modulus for d in residues
    ]
    operators = [which * modulus + value for which in (1, 2, 3)]
    names = tuple(map(str, range(modulus)))
    return Moore(
        symbols=(*names, *pending[1:]), tables=np.stack([*digits, *operators]),
        states=tuple(v + operator for operator in pending for v in names), outputs=names, readout=value,
    )  # fmt: skip
