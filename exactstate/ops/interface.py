"""What a backend implements, and the backends by name.

    B  batch     L  length     N  rows of a call     G  segments     m  width     v  width of a value vector
    r  heads     d  indices of a head     S  the sum of the ds     E  the sum of the d * ds (entries of all logits)

A backend provides two sets of functions: `Scan` composes tables that are given, and `Kernels` is everything that the
pass of an NFSM layer calls. `reference` (loops over time) defines the results, `tree` (log depth, plain torch) runs on
any device, `cpu` is compiled C++, `triton` and `triton_dot` run on a GPU. To add a backend, write a module or an object
with these functions and add it to `_BACKENDS`; mypy compares its signatures with the protocols, and tests/ops runs it
against `reference`.

Conventions of `Kernels`: `segments` is the G x 6 integer array of `exactstate.ops.segments`, on the CPU; a *local
row* is a row of the current window, and segments lie back to back among local rows. Tensors are contiguous and of
one floating type, float32 or float64. A name that ends in an underscore modifies an argument in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from exactstate import native
from exactstate.errors import BackendUnavailable, unknown
from exactstate.ops import cpu, reference, tree, triton_backend
from exactstate.ops.segments import LogitSource, Noise
from exactstate.ops.torch_kernels import TorchKernels, blas_logits, ordered_logits

LogitGradients = tuple[Tensor | None, Tensor | None, Tensor]
"""Accumulators for (input or None, weight, bias). With an index (None, None, logits of the distinct rows); with the
index of `repeated_rows` the first may be the input, row by row."""


class Scan(Protocol):
    """Composition of transition tables along time."""

    def prefix(self, tables: Tensor, heads: Sequence[int]) -> Tensor:
        """B L S -> B L S: at step t, the composite of the tables 0 .. t."""

    def run(self, tables: Tensor, initial_state: Tensor, heads: Sequence[int]) -> Tensor:
        """B L S, B r -> B L r: the index of every head after every step."""

    def adjoint(self, tables: Tensor, gains: Tensor, last: Tensor, heads: Sequence[int]) -> tuple[Tensor, Tensor]:
        """lambda_t(k) = gains_t(k) + lambda_{t+1}(table_{t+1}(k)), with lambda = `last` after the end.

        gains: B L S, last: B S -> lambda: B L S, and lambda before the first step: B S.
        """


class Kernels(Protocol):
    """The functions that a layer's forward and backward pass are made of."""

    # -- forward

    def logits(self, rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """R m, E m, E -> R E: bias + x[0] w[0] + x[1] w[1] + ..."""

    def repeated_rows(self, rows: Tensor) -> tuple[Tensor, Tensor] | None:
        """N m -> (the row in which each distinct row occurs first: R, which of them each row is: N), if rows repeat
        often enough for this backend to gain by it."""

    def tables(self, source: LogitSource, segments: Tensor, heads: Sequence[int], noise: Noise | None) -> Tensor:
        """N S: the tables of the local rows, the arg max of each column of (logits / temperature + noise).

        The lowest index wins a tie. Raises InvalidInput for logits that are NaN or infinite.
        """

    def trajectories(
        self, tables: Tensor, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int],
        row_index: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """Run the states `starts` (G r) through `tables` and write those after every row into `states` (rows r).

        Padding rows hold the last state of their segment. With `row_index`, row n uses table row_index[n]. Returns
        the last states, G r.
        """

    def argmax_trajectories(
        self, source: LogitSource, segments: Tensor, starts: Tensor, states: Tensor, heads: Sequence[int]
    ) -> Tensor:  # fmt: skip
        """`trajectories` of the tables without noise; only the column of the current index needs to be computed."""

    def project_values(self, values: Tensor, weight: Tensor, heads: Sequence[int]) -> Tensor:
        """S v, m (r v) -> S m: the value vector of every index times its head's columns of the output projection."""

    def read_out(self, vectors: Tensor, bias: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
        """S m, m, N r -> N m: the bias plus the projected value vectors of the indices, head by head."""

    def step(
        self, rows: Tensor, weight: Tensor, bias: Tensor, values: Tensor, out_weight: Tensor, out_bias: Tensor,
        starts: Tensor, heads: Sequence[int],
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """One step without noise of every sequence, from the states B r: (its read-out: B m, the next states: B r)."""

    # -- backward

    def zeros(self, like: Tensor, *shape: int) -> Tensor:
        """An accumulator for gradients, of the type and on the device of `like`."""

    def index_gains(self, output_grad: Tensor, vectors: Tensor, segments: Tensor) -> Tensor:
        """rows m, S m -> N S: for every local row, the derivative of the loss by reading out each index there."""

    def adjoint_scan_(
        self, tables: Tensor, gains: Tensor, lasts: Tensor, segments: Tensor, heads: Sequence[int]
    ) -> Tensor:  # fmt: skip
        """Turn the gains (N S) into lambda in place, from `lasts` (G S) after the end; returns lambda before the first
        row of every segment, G S."""

    def surrogate_backward_(
        self, source: LogitSource, segments: Tensor, starts: Tensor, states: Tensor, lam: Tensor, heads: Sequence[int],
        noise: Noise | None, temperature: float, gradients: LogitGradients,
    ) -> None:  # fmt: skip
        """Add the straight-through gradient of the used columns to `gradients`; `lam` (N S) is overwritten."""

    def read_out_backward(self, output_grad: Tensor, states: Tensor, heads: Sequence[int]) -> Tensor:
        """N m, N r -> S m: the gradient of the vectors, summed over the rows that read them."""

    def project_values_backward(
        self, vectors_grad: Tensor, values: Tensor, weight: Tensor, heads: Sequence[int]
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """S m -> (S v, m (r v)): from the gradient of the projected vectors to those of the values and the weight."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend: its functions, and the reason why it cannot be used here, if there is one."""

    scan: Scan
    kernels: Kernels
    why_not: Callable[[], str | None] = lambda: None


_BACKENDS: dict[str, Backend] = {
    "reference": Backend(reference, TorchKernels(reference, ordered_logits)),
    "tree": Backend(tree, TorchKernels(tree, blas_logits)),
    "cpu": Backend(cpu, cpu, native.why_not),
    "triton": Backend(triton_backend, triton_backend.ORDERED, triton_backend.why_not),
    "triton_dot": Backend(triton_backend, triton_backend.DOT, triton_backend.why_not),
}
_FASTEST_FIRST = {"cpu": ("cpu", "tree"), "cuda": ("triton", "tree")}
"""The order in which "auto" tries backends, by type of device; `tree` always works."""


def available() -> tuple[str, ...]:
    """Names of the backends that work here."""
    return tuple(name for name, backend in _BACKENDS.items() if backend.why_not() is None)


def resolve(name: str, device: str = "cpu") -> str:
    """The backend that `name` stands for: itself, or for "auto" the fastest that works on this type of device."""
    if name == "auto":
        choices = _FASTEST_FIRST.get(device, ("tree",))
        return next(choice for choice in choices if _BACKENDS[choice].why_not() is None)
    if name not in _BACKENDS:
        raise unknown("backend", name, ("auto", *_BACKENDS))
    reason = _BACKENDS[name].why_not()
    if reason is not None:
        raise BackendUnavailable(f"backend {name!r} cannot be used: {reason}; or pass backend='tree'.")
    return name


def scan(name: str) -> Scan:
    """`prefix`, `run` and `adjoint` of a backend."""
    return _BACKENDS[resolve(name)].scan


def kernels(name: str) -> Kernels:
    """The functions of a layer's pass."""
    return _BACKENDS[resolve(name)].kernels
