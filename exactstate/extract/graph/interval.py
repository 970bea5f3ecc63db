"""Intervals beside Euclidean balls, the values of a graph that is bounded; and parameters as a format stores them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exactstate._types import Floats, Ints
from exactstate.extract.graph.arithmetic import Arithmetic
from exactstate.extract.graph.folded import Constants, Folded, Held, held
from exactstate.extract.graph.upper import above, length, spectral

SQUARINGS = 8


@dataclass(frozen=True, eq=False)
class Interval:
    """For every row and entry, all numbers within `rad` of `mid`; the whole row within `ball` of it."""

    mid: Floats
    """R n."""
    rad: Floats
    """R n."""
    ball: Floats
    """R."""
    error: Floats
    """R n: what the last operation may add by rounding, ours included."""

    @classmethod
    def of(cls, mid: Floats, rad: Floats, error: Floats, ball: Floats | None = None) -> Interval:
        """Radii are raised; the error is contained in `rad` already."""
        known = np.isfinite(mid)
        rad = np.where(known, above(rad, mid.shape[-1]), np.inf)
        whole = length(rad)
        # a midpoint that overflowed says nothing
        ball = whole if ball is None else np.where(known.all(-1), np.minimum(whole, above(ball, mid.shape[-1])), np.inf)
        return cls(np.where(known, mid, 0.0), np.minimum(rad, ball[:, None]), ball, error)

    @classmethod
    def moved(cls, mid: Floats, moved: Floats, error: Floats, ball: Floats, still: Floats | None = None) -> Interval:
        """Where the arguments move the result by no more than `moved`, and all of it by `ball`.

        `still` is the error of a result that is not moved, for errors that grow no faster than in proportion: not all
        entries are moved as far as each may be.
        """
        whole = length(error)
        if still is not None:
            with np.errstate(all="ignore"):
                share = np.where(moved > 0, above(np.maximum(error - still, 0.0)) / moved, 0.0).max(-1)
                whole = np.fmin(whole, above(length(still) + above(share * ball)))
        return cls.of(mid, moved + error, error, above(ball + whole))

    @classmethod
    def points(cls, mid: Floats) -> Interval:
        return cls(mid, np.zeros_like(mid), np.zeros(len(mid)), np.zeros_like(mid))

    def rows(self, which: Ints) -> Interval:
        """Some rows; all that is not known of them counts as the error of the last operation."""
        return Interval(self.mid[which], self.rad[which], self.ball[which], self.rad[which])

    @classmethod
    def joined(cls, parts: Sequence[Interval]) -> Interval:
        return cls(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in ("mid", "rad", "ball", "error"))
        )

    @property
    def size(self) -> Floats:
        """R n: no smaller than any number inside."""
        return above(np.abs(self.mid) + self.rad)

    @property
    def lower(self) -> Floats:
        return self.mid - above(self.rad + 2.0**-52 * np.abs(self.mid))

    @property
    def upper(self) -> Floats:
        return self.mid + above(self.rad + 2.0**-52 * np.abs(self.mid))

    def narrowed(self, lower: Floats, upper: Floats) -> Interval:
        """The part between other bounds that hold as well."""
        low, high = np.maximum(self.lower, lower), np.minimum(self.upper, upper)
        with np.errstate(invalid="ignore"):
            mid = 0.5 * (low + high)
            rad = above(np.maximum(np.maximum(high - mid, mid - low), 0.0) + 2.0**-50 * (np.abs(low) + np.abs(high)))
        smaller = np.isfinite(rad) & (rad < self.rad)
        mid, rad = np.where(smaller, mid, self.mid), np.where(smaller, rad, self.rad)
        return Interval(mid, rad, length(rad), self.error)


class Parameters:
    """The constants of a graph as a machine holds them, with their norms."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.arithmetic, self.format = arithmetic, arithmetic.store
        self._held: dict[int, tuple[Constants, Held]] = {}
        self._norms: dict[int, tuple[Floats, float]] = {}
        self._computed: dict[int, tuple[object, Any]] = {}

    def stored(self, tensor: Tensor) -> Floats:
        """A parameter as the format stores it."""
        kept = tensor.detach()
        if self.format.name != "real" and kept.is_floating_point():
            kept = kept.to(getattr(torch, self.format.name))
        return np.array(kept.to("cpu", torch.float64).numpy())

    def _of(self, constant: Constants) -> Held:
        if id(constant) not in self._held:
            self._held[id(constant)] = constant, held(constant, self)
        return self._held[id(constant)][1]

    def array(self, constant: Constants) -> Floats:
        return self._of(constant).mid

    def radius(self, constant: Constants | None) -> Floats | None:
        """How far a machine's numbers may be from these; None for parameters, which are only stored."""
        return self._of(constant).rad if isinstance(constant, Folded) else None

    def kept(self, owner: object, compute: Callable[[], Any]) -> Any:
        """What was computed once for a node."""
        if id(owner) not in self._computed:
            self._computed[id(owner)] = owner, compute()
        return self._computed[id(owner)][1]

    def norms(self, constant: Constants) -> tuple[Floats, float]:
        """(Euclidean norms of the rows, largest singular value)."""
        if id(constant) not in self._norms:
            weight = self.array(constant)
            flat = weight if len(weight) <= weight.shape[1] else np.ascontiguousarray(weight.T)
            self._norms[id(constant)] = length(weight), float(spectral(flat, SQUARINGS))
        return self._norms[id(constant)]
