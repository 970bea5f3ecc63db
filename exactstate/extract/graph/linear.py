"""Linear relaxation (CROWN): lower bounds of linear forms of a node, pushed back through the graph to the inputs.

    R  rows     e  forms     n  entries of a node

Zhang et al. 2018, https://arxiv.org/abs/1811.00866. A form c . v of a node is bounded from below by a form of its
arguments: a linear map passes it on exactly, a function is replaced by a line below it where the coefficient is
positive and by one above where it is negative. At the inputs the smallest value over the region is exact.

Rigorous: the rounding of the network is a perturbation of every node (`Interval.error`), and costs |c| times its size.
Coefficients are numbers that we choose; that float64 does not compute them exactly is a perturbation, too, of the size
of what they are multiplied with, and costs as much.
"""

from __future__ import annotations

import numpy as np

from exactstate._types import Floats
from exactstate.extract.graph.arithmetic import OURS
from exactstate.extract.graph.functions import lines
from exactstate.extract.graph.interval import Interval
from exactstate.extract.graph.intervals import NONLINEAR, IntervalBounds, Place
from exactstate.extract.graph.nodes import (
    Add,
    BatchNorm,
    Begin,
    Constant,
    Conv,
    Function,
    Gather,
    Input,
    Multiply,
    Node,
    Normalize,
    Scale,
    Shift,
    State,
    Stream,
    nodes_below,
)  # fmt: skip
from exactstate.extract.graph.norms import NormParts
from exactstate.extract.graph.upper import above, length, product

SLACK = 2.0**-52


class LinearBounds:
    """Lower bounds of linear forms, from the intervals of all nodes."""

    def __init__(self, intervals: IntervalBounds) -> None:
        self.intervals = intervals
        self._norms = intervals.norms
        self.spreads: Floats | None = None
        """R e r: by how much each head that is left out moves a form, after `lower`; None where there is none."""

    def refine(self, root: Node) -> None:
        """Tighten the intervals that functions, products and norms below a node depend on."""
        for node, lag in self.order(root, 0)[::-1]:
            if isinstance(node, NONLINEAR):
                for arg, back in self.intervals.arguments(node, lag):
                    self._refine(arg, back)
            if isinstance(node, Normalize):
                self._norms[node, lag] = self._norm(node, lag)

    def _refine(self, node: Node, lag: int) -> None:
        held = self.intervals.at(node, lag)
        if not held.rad.any():
            return
        eye = np.broadcast_to(np.eye(node.size), (len(held.mid), node.size, node.size))
        lower, upper = self.lower(node, eye, lag), -self.lower(node, -eye, lag)
        self.intervals.narrow(node, lag, lower, upper)

    def _norm(self, node: Normalize, lag: int) -> Floats:
        """R groups: no larger than the norm of the centered input: it is no smaller than along any unit vector."""
        (place,) = self.intervals.arguments(node, lag)
        mid = self.intervals.at(*place).mid
        R, n = mid.shape
        units = mid.reshape(R, node.groups, -1)
        units = units - units.mean(-1, keepdims=True) if node.centered else units
        units = units / np.maximum(length(units), 1e-30)[..., None] * (1.0 - 2.0**-40)
        forms = np.zeros((R, node.groups, node.groups, n // node.groups))
        forms[:, np.arange(node.groups), np.arange(node.groups)] = units
        lost = 2.0**-40 * length(self.intervals.at(*place).size)[:, None]  # units are centered up to rounding
        return self.lower(place[0], forms.reshape(R, node.groups, n), place[1]) - lost

    def order(self, root: Node, lag: int) -> list[Place]:
        """A node and all places it depends on, each before its arguments."""
        seen: set[Place] = set()
        done: list[Place] = []
        stack: list[tuple[Place, bool]] = [((root, lag), False)]
        while stack:
            place, finished = stack.pop()
            if finished:
                done.append(place)
            elif place not in seen:
                seen.add(place)
                stack.append((place, True))
                stack.extend((arg, False) for arg in self.intervals.arguments(*place))
        return done[::-1]

    def lower(self, root: Node, forms: Floats, lag: int = 0) -> Floats:
        """R e: no larger than any value of the forms (R e n) of a node."""
        with np.errstate(all="ignore"):
            self.intervals.at(root, lag)
            self._forms: dict[Place, Floats] = {(root, lag): np.array(forms, np.float64)}
            self._constant = np.zeros(forms.shape[:2])
            self._lost = np.zeros(forms.shape[:2])
            for place in self.order(root, lag):
                if place in self._forms:
                    self._pass(*place, self._forms.pop(place))
            result = self._constant - above(self._lost + 2.0**-48 * np.abs(self._constant))
            return np.where(np.isnan(result), -np.inf, result)

    # A form of a node becomes forms of its arguments

    def _pass(self, node: Node, lag: int, forms: Floats) -> None:
        held = self.intervals.at(node, lag)
        args = self.intervals.arguments(node, lag)
        if not isinstance(node, Stream):
            self._lose(forms, held.error)
        if isinstance(node, Stream):
            self._add(forms, held.mid)
            self._lost += np.minimum(
                above(_dot(np.abs(forms), held.rad), forms.shape[2]), above(length(forms) * held.ball[:, None])
            )
        elif isinstance(node, Input):
            self._input(node, lag, forms, held)
        elif isinstance(node, State):
            self._state(node, lag, forms)
        elif isinstance(node, Constant) or not args:
            self._add(forms, held.mid)
        elif isinstance(node, Begin | Shift):
            self._give(args[0], forms)
        elif isinstance(node, Conv):
            self._conv(node, args, forms)
        elif isinstance(node, Scale | BatchNorm):
            self._scale(node, args[0], forms)
        elif isinstance(node, Add):
            self._give(args[0], forms)
            self._give(args[1], node.sign * forms)
        elif isinstance(node, Multiply):
            self._multiply(args, forms)
        elif isinstance(node, Function):
            self._function(node, args[0], forms)
        elif isinstance(node, Normalize):
            self._normalize(node, lag, args[0], forms)
        else:
            assert isinstance(node, Gather)
            self._gather(node, args, forms)

    def _give(self, place: Place, forms: Floats) -> None:
        """Forms of an argument, added to those it has."""
        if place in self._forms:
            size = self.intervals.at(*place).size
            self._lose(forms, SLACK * size)
            self._lose(self._forms[place], SLACK * size)
            forms = self._forms[place] + forms
        self._forms[place] = forms

    def _lose(self, forms: Floats, sizes: Floats) -> None:
        """What a perturbation of these sizes (R n) may cost."""
        if sizes.any():
            self._lost += above(_dot(np.abs(forms), sizes), forms.shape[2])

    def _add(self, forms: Floats, numbers: Floats) -> None:
        """The value of the forms at known numbers (R n)."""
        self._constant += _dot(forms, numbers)
        self._lose(forms, OURS.gamma(numbers.shape[1] + 2) * np.abs(numbers))

    def _input(self, node: Input, lag: int, forms: Floats, held: Interval) -> None:
        self._add(forms, held.mid)
        region = self.intervals.region
        if node.table is None and region is not None:
            radius = region.radii[self.intervals.steps.symbols[:, -1 - lag]]
            cost = np.abs(forms).sum(-1) if region.norm == "linf" else length(forms)
            self._lost += above(cost * radius[:, None], forms.shape[2])

    def _state(self, node: State, lag: int, forms: Floats) -> None:
        """Heads that may be at any index: the smallest of their contributions, index by index."""
        dropped = self.intervals.dropped[node.layer]
        if not dropped:
            self._add(forms, self.intervals.at(node, lag).mid)
            return
        self.intervals.at(node, lag)
        fixed, spreads = self.intervals.fixed[node, lag], []
        for head in dropped:
            hull = self.intervals.contributions(node.layer, head)
            possible = self.intervals.possible(node.layer, head, lag)
            values = product(forms, np.ascontiguousarray(hull.T))
            held = np.ones(values.shape, bool) if possible is None else possible[:, None, :]
            least = np.where(held, values, np.inf).min(-1)
            self._constant += least
            spreads.append(np.where(held, values, -np.inf).max(-1) - least)
            self._lose(forms, np.broadcast_to(OURS.gamma(len(hull[0]) + 8) * np.abs(hull).max(0), fixed.shape))
        self.spreads = np.stack(spreads, -1)
        self._add(forms, fixed)

    def _conv(self, node: Conv, args: list[Place], forms: Floats) -> None:
        read, (R, e, _) = self.intervals.parameters, forms.shape
        if node.bias is not None:
            bias = np.tile(read.array(node.bias), node.groups)
            self._add(forms, np.broadcast_to(bias, (R, len(bias))))
        grouped = forms.reshape(R, e, node.groups, -1)
        for place, (_, weight) in zip(args, node.taps, strict=True):
            w = read.array(weight)
            size = self.intervals.at(*place).size.reshape(R * node.groups, -1)
            magnitude = product(size, np.ascontiguousarray(np.abs(w).T)).reshape(R, -1)
            self._lose(forms, OURS.gamma(len(w) + 4) * magnitude)
            self._give(place, product(grouped, w).reshape(R, e, -1))

    def _scale(self, node: Scale | BatchNorm, place: Place, forms: Floats) -> None:
        factor, offset = self.intervals.factor_and_offset(node)
        self._add(forms, np.broadcast_to(offset, (len(forms), node.size)))
        size = self.intervals.at(*place).size
        self._lose(forms, 16.0 * SLACK * (np.abs(factor) * size + np.abs(offset)))
        self._give(place, forms * factor)

    def _multiply(self, args: list[Place], forms: Floats) -> None:
        """x y = y0 x + x0 y - x0 y0 + (x - x0)(y - y0)."""
        x, y = (self.intervals.at(*place) for place in args)
        self._add(forms, -x.mid * y.mid)
        self._lose(forms, above(x.rad * y.rad + 8.0 * SLACK * x.size * y.size))
        self._give(args[0], forms * y.mid[:, None, :])
        self._give(args[1], forms * x.mid[:, None, :])

    def _function(self, node: Function, place: Place, forms: Floats) -> None:
        x = self.intervals.at(*place)
        known = np.isfinite(x.rad)
        around = lines(node.function, np.where(known, x.lower, -1.0), np.where(known, x.upper, 1.0))
        positive, negative = np.maximum(forms, 0.0), np.minimum(forms, 0.0)
        self._add(positive, around.low)
        self._add(negative, around.high)
        lost = 4.0 * SLACK * (np.abs(around.low_slope) + np.abs(around.high_slope)) * x.size
        self._lose(forms, np.where(known, above(lost), np.inf))
        self._give(place, positive * around.low_slope[:, None, :] + negative * around.high_slope[:, None, :])

    def _normalize(self, node: Normalize, lag: int, place: Place, forms: Floats) -> None:
        """c / sigma is c / sigma0, give or take |c| times the change of 1 / sigma."""
        R, e, n = forms.shape
        parts = NormParts.of(self.intervals.parameters, node, self.intervals.at(*place), self._norms.get((node, lag)))
        gain, bias = np.tile(parts.gain, node.groups), np.tile(parts.bias, node.groups)
        self._add(forms, np.broadcast_to(bias, (R, n)))
        spread = above(parts.most * parts.wobble[:, None]).reshape(R, n)
        self._lose(forms, above(np.abs(gain) * spread))
        inverse = np.repeat(parts.inverse.reshape(R, node.groups), n // node.groups, axis=1)
        size = (
            np.abs(gain)
            * inverse
            * (self.intervals.at(*place).size + parts.x.size.mean(-1).reshape(R, -1).max(-1)[:, None])
        )
        self._lose(forms, OURS.gamma(n + 16) * above(size))
        forms = forms * (gain * inverse)[:, None, :]
        if node.centered:
            grouped = forms.reshape(R, e, node.groups, -1)
            forms = (grouped - grouped.mean(-1, keepdims=True)).reshape(R, e, n)
        self._give(place, forms)

    def _gather(self, node: Gather, args: list[Place], forms: Floats) -> None:
        R, e, _ = forms.shape
        total = sum(arg.size for arg, _ in args)
        spread = np.zeros((total, R, e))
        used = node.index >= 0
        np.add.at(spread, node.index[used], np.moveaxis(forms, 2, 0)[used])
        spread = np.ascontiguousarray(np.moveaxis(spread, 0, 2))
        if len(np.unique(node.index[used])) < int(used.sum()):
            often = int(np.bincount(node.index[used]).max())
            sizes = np.concatenate([self.intervals.at(*place).size for place in args], axis=1)
            self._lose(forms, OURS.gamma(often) * np.where(used, sizes[:, np.maximum(node.index, 0)], 0.0))
        begin = 0
        for place in args:
            self._give(place, np.ascontiguousarray(spread[:, :, begin : begin + place[0].size]))
            begin += place[0].size


def _dot(forms: Floats, numbers: Floats) -> Floats:
    """R e n, R n -> R e."""
    return np.matmul(forms, numbers[:, :, None])[:, :, 0]


def widest(root: Node) -> int:
    """The number of entries of the widest node below."""
    return max(node.size for node in nodes_below(root))
