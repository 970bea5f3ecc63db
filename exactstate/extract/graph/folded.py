"""Numbers that a model computes from its parameters, with what rounding does to them: gates, decays, normed weights.

A parameter is rounded once, when the model is converted to a format. What the forward computes from parameters is
rounded at every operation, and small differences of large numbers lose digits: it is a midpoint and a radius. Views and
reshapes of a parameter are parameters. An operation that has no rule here is evaluated, and nothing is proved of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.fx import Node as Recorded

from exactstate._types import Floats
from exactstate.extract.graph.arithmetic import OURS, Arithmetic, overflow, stored
from exactstate.extract.graph.upper import above

if TYPE_CHECKING:
    from exactstate.extract.graph.interval import Parameters


class Held(NamedTuple):
    """All numbers within `rad` of `mid`, in the shape of the tensor."""

    mid: Floats
    rad: Floats

    @property
    def size(self) -> Floats:
        return above(np.abs(self.mid) + self.rad)


Bound = Callable[["Parameters"], Held]


@dataclass(frozen=True, eq=False)
class Folded:
    """A tensor that was computed from parameters."""

    value: Tensor
    """As the model computes it in the format of the extraction."""
    name: str
    bound: Bound | None
    """What a machine holds instead; None where that is not known."""

    @property
    def shape(self) -> torch.Size:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    def __len__(self) -> int:
        return len(self.value)


Constants = Tensor | Folded


def rearranged(constant: Any, places: Callable[[Tensor], Tensor]) -> Any:
    """The same numbers, and zeros, in other places; of a parameter a parameter."""
    if isinstance(constant, Tensor):
        return places(constant)
    bound = constant.bound

    def moved(parameters: Parameters) -> Held:
        assert bound is not None
        return Held(*(np.ascontiguousarray(places(torch.from_numpy(part)).numpy()) for part in bound(parameters)))

    return Folded(places(constant.value), constant.name, None if bound is None else moved)


def held(constant: Any, parameters: Parameters) -> Held:
    """A parameter as the format stores it, a number as it is, or what was computed from these."""
    if isinstance(constant, Folded):
        assert constant.bound is not None
        return constant.bound(parameters)
    mid = parameters.stored(constant) if isinstance(constant, Tensor) else np.asarray(constant, np.float64)
    return Held(mid, np.zeros_like(mid))


def folded(recorded: Recorded, args: Any, kwargs: Any, name: str) -> Any:
    """The result of an operation on constants."""
    evaluated = torch.fx.node.map_aggregate((args, kwargs), lambda arg: arg.value if isinstance(arg, Folded) else arg)
    with torch.no_grad():
        value = recorded.target(*evaluated[0], **evaluated[1])  # type: ignore[operator]
    kind = getattr(recorded.target, "_overloadpacket", recorded.target)
    operation = str(kind).removeprefix("aten.")
    inputs = _constants((args, kwargs))
    if isinstance(value, list | tuple):
        if any(isinstance(part, Folded) for part in inputs):
            return [_computed(operation, part, name, None) for part in value]
        return value if operation in REARRANGED else [_computed(operation, part, name, None) for part in value]
    if not isinstance(value, Tensor) or not inputs or operation in FILLED:
        return value
    floating = [_value(part).is_floating_point() for part in inputs]
    if not any(floating):
        return value  # whole numbers are exact
    same = all(_value(part).dtype == value.dtype for part in inputs if _value(part).is_floating_point())
    if operation in REARRANGED and same:
        if not any(isinstance(part, Folded) for part in inputs):
            return value
        if isinstance(args[0], Folded):
            return rearranged(args[0], lambda tensor: recorded.target(tensor, *args[1:], **kwargs))  # type: ignore[operator]
    return _computed(operation, value, name, _bound(operation, args, kwargs) if same else None)


def _computed(operation: str, value: Any, name: str, bound: Bound | None) -> Any:
    return Folded(value, f"{operation} of parameters ({name})" if bound is None else name, bound)


def _value(constant: Constants) -> Tensor:
    return constant.value if isinstance(constant, Folded) else constant


def _constants(given: Any) -> list[Constants]:
    found: list[Constants] = []
    torch.fx.node.map_aggregate(given, lambda arg: found.append(arg) if isinstance(arg, Tensor | Folded) else None)
    return found


FILLED = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")
REARRANGED = (
    "view", "reshape", "flatten", "unsqueeze", "squeeze", "unflatten", "_unsafe_view", "transpose", "permute", "t",
    "movedim", "swapaxes", "numpy_T", "mT", "expand", "expand_as", "view_as", "reshape_as", "slice", "select", "clone",
    "contiguous", "detach", "alias", "lift_fresh_copy", "to", "_to_copy", "type_as", "chunk", "split",
    "split_with_sizes", "unbind", "flip", "roll", "neg", "diagonal", "repeat", "dropout", "getitem", "index_select",
    "cat", "stack", "tril", "triu",
)  # fmt: skip
"""Operations that round nothing."""


# Operations that compute


def _bound(operation: str, args: Sequence[Any], kwargs: Any) -> Bound | None:
    """The interval of a result, from those of the arguments; None where there is no rule."""
    if any(isinstance(part, Folded) and part.bound is None for part in _constants((args, kwargs))):
        return None
    function = MONOTONE.get(operation)
    if function is not None and len(args) == 1 and not kwargs:
        value, ulps = function
        return lambda parameters: monotone(parameters, value, ulps, held(args[0], parameters))
    compute = COMPUTED.get(operation)
    if compute is None:
        return None
    try:
        wanted = compute(*args, **kwargs)
    except TypeError:  # an argument that the rule does not know
        return None
    return wanted


def rounded(parameters: Parameters, mid: Floats, rad: Floats, ulps: float, size: Floats | None = None) -> Held:
    """The result of an operation: our own rounding and that of the format are added to the radius."""
    arithmetic: Arithmetic = parameters.arithmetic
    with np.errstate(all="ignore"):
        size = above(np.abs(mid) + rad) if size is None else above(size)
        error = arithmetic.several(ulps) * size + 2.0 * arithmetic.inner.tiny + overflow(size, arithmetic.inner)
        error = error + stored(size + error, arithmetic)
        rad = above(rad + error + OURS.several(max(64.0, 2.0 * ulps)) * size)
        known = np.isfinite(mid) & np.isfinite(rad)
    return Held(np.where(known, mid, 0.0), np.where(known, rad, np.inf))


def monotone(parameters: Parameters, function: Callable[[Floats], Floats], ulps: str, x: Held) -> Held:
    """A function that only rises or only falls."""
    with np.errstate(all="ignore"):
        mid = function(x.mid)
        rad = above(np.maximum(np.abs(function(x.mid + x.rad) - mid), np.abs(function(x.mid - x.rad) - mid)))
    assumed = parameters.arithmetic.assumed
    total = {"exp": assumed.exp + assumed.divide + 2 * assumed.basic, "root": assumed.root, "divide": assumed.divide}
    return rounded(parameters, mid, np.where(x.rad == 0, 0.0, rad), total[ulps])


def _sigmoid(x: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-x))


def _positive(function: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """Nothing is known where the argument is not positive."""
    return lambda x: np.where(x > 0, function(np.where(x > 0, x, 1.0)), np.nan)


MONOTONE: dict[str, tuple[Callable[[Floats], Floats], str]] = {
    "exp": (np.exp, "exp"), "log": (_positive(np.log), "exp"), "sqrt": (_positive(np.sqrt), "root"),
    "rsqrt": (_positive(lambda x: 1.0 / np.sqrt(x)), "root"), "sigmoid": (_sigmoid, "exp"), "tanh": (np.tanh, "exp"),
    "expm1": (np.expm1, "exp"), "relu": (lambda x: np.maximum(x, 0.0), "divide"),
}  # fmt: skip


def _sum_of(sign: float) -> Callable[..., Bound]:
    def rule(x: Any, y: Any) -> Bound:
        def bound(parameters: Parameters) -> Held:
            a, b = held(x, parameters), held(y, parameters)
            return rounded(parameters, a.mid + sign * b.mid, a.rad + b.rad, parameters.arithmetic.assumed.basic)

        return bound

    return rule


def times(parameters: Parameters, a: Held, b: Held) -> Held:
    with np.errstate(all="ignore"):
        rad = np.abs(a.mid) * b.rad + np.abs(b.mid) * a.rad + a.rad * b.rad
        return rounded(parameters, a.mid * b.mid, rad, parameters.arithmetic.assumed.basic)


def over(parameters: Parameters, a: Held, b: Held) -> Held:
    with np.errstate(all="ignore"):
        least = np.abs(b.mid) - above(b.rad)
        rad = np.where(least > 0, (a.rad + np.abs(a.mid / b.mid) * b.rad) / least, np.inf)
        return rounded(parameters, a.mid / b.mid, np.where(a.rad + b.rad == 0, 0.0, rad),
                       parameters.arithmetic.assumed.divide)  # fmt: skip


def dot(parameters: Parameters, a: Held, b: Held) -> Held:
    """a @ b, summed in any order."""
    n = a.mid.shape[-1]
    with np.errstate(all="ignore"):
        size = a.size @ b.size
        rad: Floats = np.abs(a.mid) @ b.rad + a.rad @ np.abs(b.mid) + a.rad @ b.rad
        rad = above(rad + 2.0 * n * parameters.arithmetic.inner.tiny, n)
        return rounded(parameters, a.mid @ b.mid, rad, (n + 1) * parameters.arithmetic.assumed.basic, size)


def _product(transform: Callable[[Held], Held] = lambda b: b) -> Callable[..., Bound]:
    def rule(x: Any, y: Any) -> Bound:
        return lambda parameters: dot(parameters, held(x, parameters), transform(held(y, parameters)))

    return rule


def total(parameters: Parameters, x: Held, dims: Any, keepdim: bool) -> Held:
    """The sum over some dimensions, or all of them."""
    axes = None if dims is None or dims == [] else tuple([dims] if isinstance(dims, int) else dims)
    n = x.mid.size if axes is None else int(np.prod([x.mid.shape[axis] for axis in axes]))
    mid, rad, size = (np.asarray(part.sum(axis=axes, keepdims=keepdim)) for part in (x.mid, x.rad, x.size))
    rad = above(rad + 2.0 * n * parameters.arithmetic.inner.tiny, n)
    return rounded(parameters, mid, rad, n * parameters.arithmetic.assumed.basic, above(size, n))


def _sum(x: Any, dim: Any = None, keepdim: bool = False) -> Bound:
    return lambda parameters: total(parameters, held(x, parameters), dim, keepdim)


def _mean(x: Any, dim: Any = None, keepdim: bool = False) -> Bound:
    def bound(parameters: Parameters) -> Held:
        whole = held(x, parameters)
        added = total(parameters, whole, dim, keepdim)
        terms = np.asarray(whole.mid.size / added.mid.size)
        return over(parameters, added, Held(terms, np.zeros_like(terms)))

    return bound


def length_of(parameters: Parameters, x: Held, dims: Any, keepdim: bool) -> Held:
    squares = times(parameters, x, x)
    return monotone(parameters, *MONOTONE["sqrt"], total(parameters, squares, dims, keepdim))


def _norm(x: Any, order: Any = 2, dim: Any = None, keepdim: bool = False) -> Bound:
    if order != 2:
        raise TypeError("only Euclidean norms")
    return lambda parameters: length_of(parameters, held(x, parameters), dim, keepdim)


def _weight_norm(v: Any, g: Any, dim: int = 0) -> Bound:
    """g v / |v|, with a norm for every index along `dim`."""

    def bound(parameters: Parameters) -> Held:
        direction, gain = held(v, parameters), held(g, parameters)
        others = [axis for axis in range(direction.mid.ndim) if axis != dim % direction.mid.ndim] if dim != -1 else None
        norm = length_of(parameters, direction, others, True)
        return times(parameters, direction, over(parameters, gain, norm))

    return bound


def _softmax(x: Any, dim: int) -> Bound:
    def bound(parameters: Parameters) -> Held:
        scores = held(x, parameters)
        apart = scores.mid - scores.mid.max(axis=dim, keepdims=True)
        raised = np.exp(apart)
        mid, n = raised / raised.sum(axis=dim, keepdims=True), scores.mid.shape[dim]
        a = parameters.arithmetic
        # subtracting the largest score is rounded, too
        off = 2.0 * (
            scores.rad.max(axis=dim, keepdims=True) + a.gamma(1) * 2.0 * scores.size.max(axis=dim, keepdims=True)
        )
        ulps = 2.0 * a.assumed.exp + a.assumed.divide + (n + 1) * a.assumed.basic
        return rounded(parameters, mid, above(mid * np.expm1(off)), ulps)

    return bound


def _power(x: Any, exponent: Any) -> Bound:
    if exponent != 2:
        raise TypeError("only squares")
    return lambda parameters: times(parameters, held(x, parameters), held(x, parameters))


def _linear(x: Any, weight: Any) -> Bound:
    return _product(lambda b: Held(b.mid.T, b.rad.T))(x, weight)


COMPUTED: dict[str, Callable[..., Bound]] = {
    "add": _sum_of(1.0), "sub": _sum_of(-1.0), "rsub": lambda x, y: _sum_of(-1.0)(y, x),
    "mul": lambda x, y: lambda parameters: times(parameters, held(x, parameters), held(y, parameters)),
    "div": lambda x, y: lambda parameters: over(parameters, held(x, parameters), held(y, parameters)),
    "reciprocal": lambda x: lambda parameters: over(parameters, held(1.0, parameters), held(x, parameters)),
    "matmul": _product(), "mm": _product(), "mv": _product(), "dot": _product(), "vdot": _product(),
    "linear": _linear, "sum": _sum, "mean": _mean, "linalg_vector_norm": _norm, "norm": _norm,
    "_weight_norm": _weight_norm, "softmax": _softmax, "_softmax": lambda x, dim, half: _softmax(x, dim),
    "square": lambda x: _power(x, 2), "pow": _power,
}  # fmt: skip


def reciprocal(constant: Any) -> Folded:
    """1 / constant in real numbers: who divides by it counts the roundings of a division."""

    def bound(parameters: Parameters) -> Held:
        x = held(constant, parameters)
        with np.errstate(all="ignore"):
            mid, least = 1.0 / x.mid, np.abs(x.mid) - above(x.rad)
            rad = np.where(x.rad == 0, 0.0, np.where(least > 0, np.abs(mid) * x.rad / least, np.inf))
            rad = above(rad + OURS.several(8.0) * np.abs(mid))
        known = np.isfinite(mid) & np.isfinite(rad)
        return Held(np.where(known, mid, 0.0), np.where(known, rad, np.inf))

    known = not isinstance(constant, Folded) or constant.bound is not None
    value = 1.0 / (_value(constant) if isinstance(constant, Tensor | Folded) else torch.as_tensor(constant)).double()
    return Folded(value, constant.name if isinstance(constant, Folded) else "", bound if known else None)
