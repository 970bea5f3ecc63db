"""A machine's tables laid out for one strategy of the compiled interpreter.

    A  symbols     n  states     k  symbols to a group

The structures are those of exactstate/csrc/program.hpp, field by field. A program keeps the arrays that they point to.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactstate._types import Ints
from exactstate.native import address
from exactstate.runtime.heads import Heads
from exactstate.runtime.strategies import HAS_32, IN_A_REGISTER, Shape, features

_CODES = {"plain": 0, "packed": 1, "lookback": 2, "shuffle": 3, "heads": 3}


class _Program(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("strategy", "symbols", "states", "state_bytes", "shift", "pack")),
        *((name, ctypes.c_void_p) for name in ("step", "next")),
        *((name, ctypes.c_int64) for name in ("register_pack", "row_bytes", "bundles")),
        ("rows", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("wide", "heads")),
        *((name, ctypes.c_void_p) for name in ("function_of", "strides", "indices", "decode")),
    ]  # fmt: skip


class _OutputTable(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_int64), ("step", ctypes.c_void_p), ("next", ctypes.c_void_p)]


@dataclass(eq=False)
class Program:
    """Tables for one strategy."""

    structure: _Program
    pack: int
    kept: list[Ints] = field(default_factory=list)

    @property
    def address(self) -> int:
        return ctypes.addressof(self.structure)


@dataclass(eq=False)
class OutputTable:
    """What to write at every symbol: entries parallel to the tables of a program."""

    structure: _OutputTable
    dtype: np.dtype
    kept: tuple[Ints, ...]

    @property
    def address(self) -> int:
        return ctypes.addressof(self.structure)


def program(shape: Shape, strategy: str, states_of: Ints | None) -> Program:
    """The program of a machine for a strategy. With heads, `states_of` maps their joint states to states."""
    tables = shape.tables
    pack = 1 if strategy == "plain" else shape.pack
    step = _padded(tables)
    made = Program(_Program(), pack)
    _fill(
        made, strategy=_CODES[strategy], symbols=shape.symbols, states=shape.states, pack=pack,
        state_bytes=step.itemsize, shift=(step.shape[1] - 1).bit_length(),
        step=step, next=step if pack == 1 else _padded(_grouped(tables, pack)),
    )  # fmt: skip
    if strategy == "heads":
        assert shape.heads is not None
        assert states_of is not None
        _fill_registers(made, shape.heads, shape.register_pack, states_of)
    elif strategy == "shuffle":
        alone = Heads((tables,), (0,))
        _fill_registers(made, alone, shape.register_pack, np.arange(shape.states), np.arange(shape.states)[:, None])
    return made


def output_table(shape: Shape, pack: int, emitted: Ints) -> OutputTable:
    """Write emitted[a, q] when symbol a is read in state q."""
    step = _padded(emitted)
    groups = step if pack == 1 else _padded_groups(shape.tables, emitted, pack)
    return OutputTable(_OutputTable(step.itemsize, address(step), address(groups)), emitted.dtype, (step, groups))


def _fill(made: Program, **values: Any) -> None:
    """Set fields of the structure; arrays by their address."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            made.kept.append(value)
            value = address(value)
        setattr(made.structure, name, int(value))


def _fill_registers(made: Program, heads: Heads, k: int, states_of: Ints, indices: Ints | None = None) -> None:
    """Rows of functions for the registers, and how indices become states.

    Heads with the same tables share a function: composing it tells where all indices go.
    """
    indices = heads.joint.indices if indices is None else indices
    number: dict[bytes, int] = {}
    function_of = np.array([number.setdefault(table.tobytes(), len(number)) for table in heads.tables], np.int32)
    functions = [heads.tables[int(np.argmax(function_of == j))] for j in range(len(number))]
    wide = max(heads.sizes) > IN_A_REGISTER
    in_a_row = 2 if not wide and len(functions) > 1 and features() & HAS_32 else 1
    width = 32 if wide else 16
    bundles = -(-len(functions) // in_a_row)
    rows = np.zeros((bundles, len(functions[0]) ** k, in_a_row, width), np.uint8)
    for j, table in enumerate(functions):
        rows[j // in_a_row, :, j % in_a_row, : table.shape[1]] = _grouped(table, k)

    strides = np.cumprod([1, *heads.sizes[:-1]]).astype(np.int32)
    decode = np.full(int(np.prod(heads.sizes)), -1, np.int32)
    decode[indices.astype(np.int64) @ strides] = states_of
    # several tuples may mean one state; the first one serves to continue from it
    _, first = np.unique(states_of, return_index=True)
    _fill(
        made, register_pack=k, row_bytes=width * in_a_row, bundles=bundles, rows=rows, wide=wide,
        heads=len(heads.tables), function_of=function_of, strides=strides,
        indices=np.ascontiguousarray(indices[first], np.uint8), decode=decode,
    )  # fmt: skip


def _grouped(tables: Ints, k: int) -> Ints:
    """The tables of all groups of k symbols, the first symbol counting most: A^k n."""
    groups = tables
    for _ in range(k - 1):
        groups = np.stack([then[groups] for then in tables], axis=1).reshape(-1, tables.shape[1])
    return groups


def _padded(table: Ints, dtype: np.dtype | None = None) -> Ints:
    """Rows lengthened to a power of two, so that an address is a shift and a sum."""
    rows, n = table.shape[:2]
    wide = np.zeros((rows, 1 << (n - 1).bit_length(), *table.shape[2:]), dtype or table.dtype)
    wide[:, :n] = table
    return wide


def _padded_groups(tables: Ints, emitted: Ints, k: int) -> Ints:
    """What is written for the k symbols of every group from every state: A^k, padded n, k."""
    A, n = tables.shape
    groups = np.empty((A**k, n, k), emitted.dtype)
    letters = np.stack(np.unravel_index(np.arange(A**k), (A,) * k), axis=1)
    state = np.broadcast_to(np.arange(n), (A**k, n))
    for t in range(k):
        groups[:, :, t] = np.take_along_axis(emitted[letters[:, t]], state, axis=1)
        state = np.take_along_axis(tables[letters[:, t]], state, axis=1).astype(np.intp)
    return _padded(groups)
