"""A graph on intervals: whatever a machine of a given arithmetic computes, for inputs in a region, lies inside.

    R  rows     n  entries of a node

Beside the interval of every entry there is a Euclidean ball around the whole vector, and the smaller of the two counts:
a matrix stretches a ball by its largest singular value and an interval by sums of absolute values. `error` is what a
single operation adds: the rounding of the format. All numbers are raised by what float64 may have lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from exactstate._types import Bools, Floats, Ints
from exactstate.errors import InvalidInput
from exactstate.extract.graph.arithmetic import EXACT, OURS, Arithmetic, of_sum, overflow, stored
from exactstate.extract.graph.folded import Constants
from exactstate.extract.graph.functions import FUNCTIONS, lines
from exactstate.extract.graph.gated import ball_behind, parts_of
from exactstate.extract.graph.interval import Interval, Parameters
from exactstate.extract.graph.nodes import (
    Add,
    BatchNorm,
    Begin,
    Constant,
    Conv,
    Function,
    Gather,
    Graph,
    Input,
    Multiply,
    Node,
    Normalize,
    Scale,
    Shift,
    State,
    Stream,
)  # fmt: skip
from exactstate.extract.graph.norms import NormParts
from exactstate.extract.graph.steps import Region, Steps
from exactstate.extract.graph.upper import above, length, product
from exactstate.extract.result import head_offsets

Place = tuple[Node, int]
"""A node, and how many steps ago."""
NARROW = 0.125
"""Radii below which a slope and a curvature say as much of a function as its range."""


class IntervalBounds:
    """Intervals of every node of a graph, for some steps of words that began equally long ago."""

    AT_ONCE = 1 << 22
    """Numbers in the largest array of a batch."""

    def __init__(
        self, graph: Graph, arithmetic: Arithmetic, steps: Steps, *, parameters: Parameters | None = None,
        region: Region | None = None, dropped: Sequence[Sequence[int]] | None = None,
        streams: Sequence[Interval] = (), quick: bool = False,
    ) -> None:  # fmt: skip
        self.graph, self.arithmetic, self.steps, self.region = graph, arithmetic, steps, region
        self.parameters = parameters or Parameters(arithmetic)
        self.dropped = dropped or [()] * len(graph.layers)
        """For every layer the heads that may be at any of their indices."""
        self.quick = quick
        """Whether lengths are enough: of the rows of weights, and of a Jacobian its Frobenius norm."""
        # bounds of our own rounding alone can afford to be crude
        self._crude = arithmetic is EXACT or (quick and arithmetic.inner.name == "float64")
        self.streams = streams
        """By layer and number of input, where the graph is cut."""
        began = (steps.symbols >= 0).sum(1)
        assert len(np.unique(began)) <= 1
        self.begun = int(began[0]) if len(began) else steps.symbols.shape[1]
        self._held: dict[Place, Interval] = {}
        self.norms: dict[Place, Floats] = {}
        """R groups: no larger than the norms of the centered inputs of a `Normalize`, as linear relaxation found."""
        self.fixed: dict[Place, Floats] = {}
        """What the other heads add to the output of a layer of which some are left out."""

    def __len__(self) -> int:
        return len(self.steps.symbols)

    def at(self, node: Node, lag: int = 0) -> Interval:
        """The interval of a node some steps ago."""
        pending: list[Place] = [(node, lag)]
        while pending:
            place = pending[-1]
            missing = [arg for arg in self.arguments(*place) if arg not in self._held]
            if missing:
                pending += missing
            else:
                pending.pop()
                if place not in self._held:
                    with np.errstate(all="ignore"):
                        self._held[place] = self._compute(*place)
        return self._held[node, lag]

    def narrow(self, node: Node, lag: int, lower: Floats, upper: Floats) -> None:
        """Use tighter bounds of a node for everything that is computed later."""
        self._held[node, lag] = self.at(node, lag).narrowed(lower, upper)

    def arguments(self, node: Node, lag: int) -> list[Place]:
        """The places that a node reads."""
        if isinstance(node, Begin) and lag >= self.begun:
            return []
        if isinstance(node, Conv):
            return [(node.args[0], lag + back) for back, _ in node.taps]
        back = node.lag if isinstance(node, Shift) else 0
        return [(arg, lag + back) for arg in node.args]

    def _compute(self, node: Node, lag: int) -> Interval:
        args = [self._held[place] for place in self.arguments(node, lag)]
        rule = RULES.get(type(node))
        if rule is None:
            raise InvalidInput(f"rounding of {node.name} is not bounded: it is none of the operations known here.")
        if isinstance(node, Input | State | Begin | Stream):
            return rule(self, node, lag, *args)
        found = rule(self, node, *args)
        gated = None if self._crude else parts_of(node)
        if gated is not None:
            self._held[node, lag] = found
            ball = ball_behind(self, gated, lag)
            if ball is not None:
                found = Interval.of(found.mid, found.rad, found.error, np.minimum(found.ball, ball))
        return found

    # What depends on no other node

    def input(self, node: Input, lag: int) -> Interval:
        symbols = self.steps.symbols[:, -1 - lag]
        if node.table is not None:
            # nothing depends on the row of a step before the word began
            return self._constants(node.table, np.maximum(symbols, 0))
        assert self.region is not None
        mid = self.region.centers[symbols]
        radius = self.region.radii[symbols]
        store = self.arithmetic.store
        rounding = store.unit * (np.abs(mid) + radius[:, None]) + store.tiny
        ball = above(length(rounding) + radius * (1.0 if self.region.norm == "l2" else np.sqrt(mid.shape[1])))
        return Interval.of(mid, radius[:, None] + rounding, rounding, ball)

    def stream(self, node: Stream, lag: int) -> Interval:
        # nothing depends on the row of a step before the word began
        return self.streams[node.layer].rows(np.maximum(self.steps.symbols[:, -1 - lag], 0))

    def _constants(self, constant: Constants, rows: Ints | slice) -> Interval:
        mid, rad = self.parameters.array(constant)[rows], self.parameters.radius(constant)
        return Interval.points(mid) if rad is None else Interval.of(mid, rad[rows], rad[rows])

    def state(self, node: State, lag: int) -> Interval:
        indices = self.steps.indices[node.layer][:, -1 - lag]
        projected = self._projected(node.layer, Interval.points(self._values(node.layer, indices)))
        if not self.dropped[node.layer]:
            return projected
        # heads that may be at several indices: the middle of what they add, and half the distance as radius
        self.fixed[node, lag] = mid = projected.mid
        rad, most = projected.rad, np.zeros(node.size)
        for head in self.dropped[node.layer]:
            hull = self.contributions(node.layer, head)
            low, high = self.extremes(node.layer, head, lag)
            mid, rad = mid + 0.5 * (low + high), rad + 0.5 * (high - low)
            most = most + np.abs(hull).max(0)
        error = self._projected(node.layer, self._values_of_any_index(node.layer, indices)).error
        error = above(error + OURS.gamma(4 * len(self.dropped[node.layer]) + 8) * most)
        return Interval.of(mid, rad + error, error)

    def _projected(self, layer: int, values: Interval) -> Interval:
        """The output of a layer; the values themselves where its projection is part of the graph."""
        if not self.graph.layers[layer].projected:
            return values
        projection, read = self.graph.layers[layer].module.out_proj, self.parameters
        tap = (read.array(projection.weight), *read.norms(projection.weight))
        return self.affine(values, [tap], None if projection.bias is None else read.array(projection.bias), stores=1)

    def _values_of_any_index(self, layer: int, indices: Ints) -> Interval:
        """The values of all heads, those that are left out between the smallest and the largest of any index."""
        block = self.graph.layers[layer].module
        mid, values = self._values(layer, indices), self.parameters.array(block.values)
        rad = np.zeros_like(mid)
        for head in self.dropped[layer]:
            begin = head_offsets(block.heads)[head]
            columns = slice(head * block.value_width, (head + 1) * block.value_width)
            rad[:, columns] = np.abs(values[begin : begin + block.heads[head]]).max(0)
        return Interval.of(mid, rad, np.zeros_like(mid))

    def extremes(self, layer: int, head: int, lag: int) -> tuple[Floats, Floats]:
        """(R m, R m): the smallest and the largest that a head that is left out may add."""
        hull, possible = self.contributions(layer, head), self.possible(layer, head, lag)
        if possible is None:
            shape = len(self), hull.shape[1]
            return np.broadcast_to(hull.min(0), shape), np.broadcast_to(hull.max(0), shape)
        held = possible[:, :, None]
        return np.where(held, hull, np.inf).min(1), np.where(held, hull, -np.inf).max(1)

    def possible(self, layer: int, head: int, lag: int) -> Bools | None:
        """R d: the indices at which a head that is left out may be; None where it may be at any."""
        if self.steps.possible is None or lag or layer < len(self.graph.layers) - 1:
            return None
        sizes = self.graph.layers[layer].module.heads
        return self.steps.possible[:, head_offsets(sizes)[head] :][:, : sizes[head]]

    def _values(self, layer: int, indices: Ints) -> Floats:
        block = self.graph.layers[layer].module
        values = self.parameters.array(block.values)[np.maximum(indices, 0) + np.array(head_offsets(block.heads))]
        values = values.copy()
        values[:, list(self.dropped[layer])] = 0.0
        return values.reshape(len(indices), block.value_width * len(block.heads))

    def contributions(self, layer: int, head: int) -> Floats:
        """d m: what a head adds to the output of its layer at each of its indices, to float64."""
        block = self.graph.layers[layer].module
        begin = head_offsets(block.heads)[head]
        values = self.parameters.array(block.values)[begin : begin + block.heads[head]]
        columns = slice(head * block.value_width, (head + 1) * block.value_width)
        if not self.graph.layers[layer].projected:
            spread = np.zeros((len(values), block.value_width * len(block.heads)))
            spread[:, columns] = values
            return spread
        return product(values, np.ascontiguousarray(self.parameters.array(block.out_proj.weight)[:, columns].T))

    # Operations

    def affine(
        self, x: Interval, taps: Sequence[tuple[Floats, Floats, float]], bias: Floats | None, *, stores: int = 2,
        groups: int = 1, others: Sequence[Interval] = (), radii: Sequence[Floats | None] = (),
        off: Floats | None = None, quick: bool = False,
    ) -> Interval:  # fmt: skip
        """bias + the sum of W x, for (W, row norms, largest singular value) of every tap.

        `radii` are those of the weights and `off` that of the bias, where they were computed from parameters.
        """
        held = [x, *others]
        y: Any = 0.0
        magnitude: Any = 0.0
        moved: Any = 0.0
        ball: Any = 0.0
        terms = 1
        inexact: Any = 0.0 if off is None else off
        for place, (value, (weight, rows, norm)) in enumerate(zip(held, taps, strict=True)):
            if radii and radii[place] is not None:
                spread = np.ascontiguousarray(np.asarray(radii[place]).T)
                inexact = inexact + product(self._grouped(value.size, groups), spread)
            mid, radius = self._grouped(value.mid, groups), self._grouped(value.rad, groups)
            y = y + product(mid, np.ascontiguousarray(weight.T))
            part = np.minimum(np.repeat(value.ball, groups), length(radius))[:, None]
            by_ball: Any = above(rows * part)
            if quick:
                size: Any = rows * length(mid)[:, None]
            else:
                absolute = np.ascontiguousarray(np.abs(weight).T)
                size = product(np.abs(mid), absolute)
                by_ball = np.minimum(by_ball, above(product(radius, absolute), weight.shape[1]))
            magnitude, moved, ball = magnitude + size + by_ball, moved + by_ball, ball + norm * value.ball
            terms += weight.shape[1]
        b: Any = 0.0 if bias is None else bias
        y, magnitude = y + b, above(magnitude + np.abs(b) + inexact, terms)
        partial = above(magnitude + np.abs(y) + moved, terms) / 2.0
        lost = above(inexact, terms) if np.any(inexact) else 0.0
        error: Any = self.summed(terms, partial, magnitude, np.abs(y) + np.abs(b) + moved, stores, lost)
        n = y.shape[1] * groups
        y, moved, error = (np.reshape(part, (-1, n)) for part in (y, moved, error))
        return Interval.moved(y, moved, error, ball)

    def summed(
        self, terms: int, partial: Floats, magnitude: Floats, size: Floats, stores: int, lost: Any = 0.0
    ) -> Floats:
        """The error of a sum of products and of storing it, for a result no larger than `size`; see `of_sum`."""
        ours = of_sum(terms, partial, magnitude, OURS)
        error = of_sum(terms, partial, magnitude, self.arithmetic) + overflow(magnitude, self.arithmetic.inner) + lost
        for _ in range(stores):
            error = error + stored(size + error + ours, self.arithmetic)
        return above(error + ours)

    @staticmethod
    def _grouped(array: Floats, groups: int) -> Floats:
        return array.reshape(len(array) * groups, array.shape[1] // groups)

    def conv(self, node: Conv, *args: Interval) -> Interval:
        read = self.parameters
        taps = [(read.array(weight), *read.norms(weight)) for _, weight in node.taps]
        bias = None if node.bias is None else read.array(node.bias)
        radii = [read.radius(weight) for _, weight in node.taps]
        return self.affine(
            args[0],
            taps,
            bias,
            groups=node.groups,
            others=args[1:],
            radii=radii,
            off=read.radius(node.bias),
            quick=self.quick,
        )

    def factor_and_offset(self, node: Scale | BatchNorm) -> tuple[Floats, Floats]:
        """What a machine multiplies with and adds, at the midpoints of both."""
        read = self.parameters
        if isinstance(node, Scale):
            factor = np.ones(node.size) if node.factor is None else read.array(node.factor)
            return factor, np.zeros(node.size) if node.offset is None else read.array(node.offset)
        gain = np.ones(node.size) if node.gain is None else read.array(node.gain)
        factor = gain / np.sqrt(read.array(node.variance) + node.epsilon)
        return factor, (0.0 if node.bias is None else read.array(node.bias)) - read.array(node.mean) * factor

    def scale(self, node: Scale, x: Interval) -> Interval:
        factor, offset = self.factor_and_offset(node)
        mid = x.mid * factor + offset
        moved = above(np.abs(factor) * x.rad)
        inexact: Any = 0.0
        for part, size in ((node.factor, x.size), (node.offset, 1.0)):
            radius = self.parameters.radius(part)
            inexact = inexact if radius is None else above(inexact + radius * size)
        magnitude = above(np.abs(factor) * x.size + np.abs(offset) + inexact)
        arithmetic, assumed = self.arithmetic, self.arithmetic.assumed
        error = arithmetic.several(2 * assumed.basic + assumed.divide) * magnitude
        error = error + inexact + 4.0 * arithmetic.inner.tiny + overflow(magnitude, arithmetic.inner)
        error = error + node.stores * stored(magnitude + error, arithmetic)
        error = above(error + OURS.several(8.0) * magnitude)
        return Interval.moved(mid, moved, error, float(np.abs(factor).max()) * x.ball)

    def batch_norm(self, node: BatchNorm, x: Interval) -> Interval:
        """Whether x - mean is divided and multiplied, or one factor and one offset are computed first."""
        arithmetic, assumed, read = self.arithmetic, self.arithmetic.assumed, self.parameters
        factor, offset = self.factor_and_offset(node)
        variance, mean = read.array(node.variance) + node.epsilon, np.abs(read.array(node.mean))
        inverse, bias = 1.0 / np.sqrt(variance), np.abs(offset + read.array(node.mean) * factor)
        mid, moved = x.mid * factor + offset, above(np.abs(factor) * x.rad)
        centered = above(x.size + mean)
        terms = above(centered * np.abs(factor) + bias)
        ulps, tiny = assumed.root + assumed.divide + 8 * assumed.basic, arithmetic.inner.tiny + arithmetic.tiny
        error: Any = (arithmetic.several(ulps) + arithmetic.inner.tiny / variance) * terms
        error = error + 8.0 * tiny * (1.0 + np.abs(factor)) * (1.0 + centered) * (1.0 + inverse)
        for part in (variance, centered, inverse + 0.0 * centered, centered * inverse, terms):
            error = error + overflow(above(part), arithmetic.inner) + overflow(above(part), arithmetic.store)
        error = error + 7.0 * stored(terms + error, arithmetic)
        error = above(error + OURS.several(32.0) * terms)
        return Interval.moved(mid, moved, error, float(np.abs(factor).max()) * x.ball)

    def add(self, node: Add, x: Interval, y: Interval) -> Interval:
        mid, moved = x.mid + node.sign * y.mid, x.rad + y.rad
        error, still = (self._once(above(size)) for size in (np.abs(mid) + moved, np.abs(mid)))
        return Interval.moved(mid, moved, error, x.ball + y.ball, still)

    def multiply(self, node: Multiply, x: Interval, y: Interval) -> Interval:
        mid = x.mid * y.mid
        moved = above(np.abs(x.mid) * y.rad + np.abs(y.mid) * x.rad + x.rad * y.rad)
        ball: Any = np.abs(x.mid).max(-1) * y.ball + np.abs(y.mid).max(-1) * x.ball + x.rad.max(-1) * y.ball
        return Interval.moved(mid, moved, self._once(above(np.abs(mid) + moved)), ball)

    def _once(self, size: Floats) -> Floats:
        """The error of one sum or product of this size, ours included."""
        error = self.arithmetic.gamma(1) * size + self.arithmetic.inner.tiny + overflow(size, self.arithmetic.inner)
        return above(error + stored(size + error, self.arithmetic) + OURS.gamma(2) * size)

    def function(self, node: Function, x: Interval) -> Interval:
        scalar = FUNCTIONS[node.function]
        mid, slope = scalar.value(x.mid), np.abs(scalar.slope(x.mid)) + OURS.several(64.0) * scalar.steepest
        steepest: Any = scalar.steepest
        if scalar.curvature:
            steepest = np.minimum(above(slope + scalar.curvature * x.rad), steepest)
        moved: Any = above(steepest * x.rad)
        open_ = ~(x.rad < NARROW)
        if open_.any():
            low, high = function_range(node.function, x.lower[open_], x.upper[open_])
            at = mid[open_]
            moved[open_] = np.minimum(moved[open_], above(np.maximum(np.maximum(high - at, at - low), 0.0)))
        f = above(np.abs(mid) + moved)
        error: Any = scalar.error(self.arithmetic, x.size, f) + overflow(x.size, self.arithmetic.inner)
        error = error + (stored(f + error, self.arithmetic) if node.function != "relu" else 0.0)
        return Interval.moved(mid, moved, above(error + OURS.several(64.0) * f), np.max(steepest, -1) * x.ball)

    def normalize(self, node: Normalize, x: Interval) -> Interval:
        parts = NormParts.of(self.parameters, node, x)
        gain, bias = parts.gain, parts.bias
        mid = gain * parts.centered.mid * parts.inverse[:, None] + bias
        spread = above(parts.most * parts.wobble[:, None])
        moved = above(np.abs(gain) * (parts.centered.rad * parts.largest[:, None] + spread))
        error = parts.rounding(self.arithmetic, parts.x.size, parts.centered.size)
        still = None
        if not self.quick:
            still = parts.rounding(self.arithmetic, np.abs(parts.x.mid), np.abs(parts.centered.mid)).reshape(
                x.mid.shape
            )
        ball = np.abs(gain).max() * above(parts.ball * parts.stretch)
        y, moved, error = (np.reshape(part, x.mid.shape) for part in (mid, moved, error))
        return Interval.moved(y, moved, error, np.sqrt((ball.reshape(len(x.mid), -1) ** 2).sum(1)), still)

    def gather(self, node: Gather, *args: Interval) -> Interval:
        mid, rad = (np.concatenate([getattr(arg, part) for arg in args], axis=1) for part in ("mid", "rad"))
        index, zero = node.index, node.index < 0
        picked = [np.where(zero, 0.0, part[:, np.maximum(index, 0)]) for part in (mid, rad)]
        often = np.bincount(index[~zero]).max(initial=1)
        ball = np.sqrt(often * np.sum([arg.ball**2 for arg in args], axis=0))
        return Interval.of(picked[0], picked[1], np.zeros_like(picked[0]), above(ball))

    def shift(self, node: Shift, x: Interval) -> Interval:
        return Interval(x.mid, x.rad, x.ball, np.zeros_like(x.mid))

    def begin(self, node: Begin, lag: int, *args: Interval) -> Interval:
        if not args:
            return Interval.points(np.zeros((len(self), node.size)))
        return Interval(args[0].mid, args[0].rad, args[0].ball, np.zeros_like(args[0].mid))

    def constant(self, node: Constant) -> Interval:
        held = self._constants(node.value, slice(None))
        mid, rad = (np.tile(part, (len(self), 1)) for part in (held.mid, held.rad))
        return Interval.of(mid, rad, rad) if rad.any() else Interval.points(mid)


def function_range(name: str, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """What a function takes on an interval: no larger, no smaller."""
    if name == "relu":
        return np.maximum(lower, 0.0), np.maximum(upper, 0.0)
    safe = np.isfinite(lower) & np.isfinite(upper)
    low, high = np.where(safe, lower, -1e9), np.where(safe, upper, 1e9)
    around = lines(name, low, high)
    ends = np.stack([around.low_slope * low + around.low, around.low_slope * high + around.low])
    tops = np.stack([around.high_slope * low + around.high, around.high_slope * high + around.high])
    slack = 2.0**-48 * (np.abs(ends).max(0) + np.abs(tops).max(0) + np.abs(low) + np.abs(high))
    return np.where(safe, ends.min(0) - slack, -np.inf), np.where(safe, tops.max(0) + slack, np.inf)


RULES: dict[type[Node], Callable[..., Interval]] = {
    Input: IntervalBounds.input, Stream: IntervalBounds.stream, State: IntervalBounds.state,
    Constant: IntervalBounds.constant,
    Conv: IntervalBounds.conv, Scale: IntervalBounds.scale, Add: IntervalBounds.add, Multiply: IntervalBounds.multiply,
    BatchNorm: IntervalBounds.batch_norm,
    Function: IntervalBounds.function, Normalize: IntervalBounds.normalize, Gather: IntervalBounds.gather,
    Shift: IntervalBounds.shift, Begin: IntervalBounds.begin,
}  # fmt: skip
NONLINEAR = (Function, Multiply, Normalize)
"""Operations whose bounds depend on how wide the intervals of their arguments are."""
