"""The compiled kernels: one shared library with a plain C interface, and what to say when it is absent.

`library()` returns it or raises; `available()` and `why_not()` ask without raising. Nothing here knows torch.
Calls through ctypes release the interpreter lock for their whole duration.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from collections.abc import Callable
from ctypes import c_double, c_int, c_int64, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from exactstate.errors import BackendUnavailable, InvalidConfig, InvalidInput

# The C interface: name -> (result, arguments). Pointers are passed as addresses, sizes as int64.

_POINTER, _SIZE, _INT, _SEED, _REAL = c_void_p, c_int64, c_int, c_uint64, c_double

_RUN_WORDS = [
    *(_POINTER, _INT, _SIZE, _SIZE),  # tables, bytes of a state, symbols, states
    *(_POINTER, _INT, _SIZE, _SIZE),  # words, bytes of a symbol, how many, their length
    *(_POINTER, _POINTER, _POINTER, _INT),  # starts, path or null, finals, threads
]
_INTERPRET = [
    *(_POINTER, _POINTER),  # program, outputs or null
    *(_POINTER, _INT, _POINTER, _SIZE),  # symbols, bytes of a symbol, what bytes stand for or null, how many
    *(_POINTER, _POINTER),  # state, out or null
]
_HEADS = [_POINTER, _SIZE]  # sizes, how many
_SEGMENTS = [_POINTER, _SIZE]
_WEIGHTS = [_POINTER, _POINTER, _POINTER, _SIZE]  # input, weight, bias, width of the input
_INDEXED = [_POINTER, _POINTER]  # logits of distinct rows, which of them each row is
_CELLS = [_POINTER, _INT]  # integers, bytes of each

_TABLES = [*_WEIGHTS, *_INDEXED, *_HEADS, *_SEGMENTS, _INT, _REAL, _SEED, *_CELLS, _INT]
_ARGMAX_TRAJECTORIES = [*_WEIGHTS, *_HEADS, *_SEGMENTS, _POINTER, _POINTER, _POINTER, _INT]
_ADJOINT = [*_CELLS, *_HEADS, *_SEGMENTS, _POINTER, _POINTER, _POINTER, _INT]
_SURROGATE_BACKWARD = [
    *(*_WEIGHTS, *_INDEXED, *_HEADS, *_SEGMENTS, _POINTER, *_CELLS, _INT, _REAL, _SEED),
    *(_POINTER, _POINTER, _POINTER, _POINTER, _INT),  # lambda, gradients of input, weight, bias, threads
]
_PROJECT_VALUES = [_POINTER, _SIZE, _POINTER, _SIZE, *_HEADS, _POINTER]
_PROJECT_VALUES_BACKWARD = [_POINTER, _POINTER, _SIZE, _POINTER, _SIZE, *_HEADS, _POINTER, _POINTER]
_INDEX_GAINS = [_POINTER, _POINTER, _SIZE, _SIZE, *_SEGMENTS, _POINTER, _INT]
_STEP = [
    *(*_WEIGHTS, *_HEADS, _POINTER, _SIZE, _POINTER, _POINTER, _SIZE),  # values, their width, projection, its outputs
    *(_POINTER, _SIZE, _POINTER, _POINTER, _INT),  # starts, rows, states, output, threads
]
_READ_OUT = [_POINTER, _POINTER, _SIZE, *_HEADS, *_CELLS, _SIZE, _POINTER, _INT]
_READ_OUT_BACKWARD = [_POINTER, _SIZE, *_HEADS, *_CELLS, _SIZE, _POINTER, _INT]
_SOFT_STEPS = [*_HEADS, _SIZE, _SIZE, *[_POINTER] * 4]  # batch, length, start, initial, lengths, resets
_SOFT_ROWS = [_POINTER, _SIZE, _POINTER]  # matrices of distinct rows, how many, which of them each step has
_TREE = [_POINTER, _POINTER, _POINTER, _SIZE]  # parents, symbols, visits, nodes
_OBSERVED = [_POINTER, _POINTER, _POINTER]  # nodes, outputs, counts
_MERGER = [
    *(*_TREE, *_OBSERVED, _SIZE),
    *(_INT, _INT, _INT, _POINTER, _SIZE, _SIZE),  # Mealy, noisy, order, ranks, symbols, outputs
    *(_POINTER, _SIZE, _SIZE, _SIZE),  # priors, weights of right and wrong outputs, refused merge
]
_PARTITION_MACHINE = [
    *(*_TREE, *_OBSERVED, _SIZE),
    *(_POINTER, _SIZE, _SIZE, _SIZE, _INT),  # states of nodes, states, symbols, outputs, Mealy
    *(_POINTER, _POINTER, _POINTER),  # tables, read-out, visits
]
_REFINE_TOTALS = [
    *(*_TREE[:2], _SIZE, *_OBSERVED, _SIZE),
    *(_POINTER, _POINTER, _POINTER, _SIZE, _INT),  # tables, read-out, states of nodes, states, Mealy
    *(_SIZE, _SIZE, _POINTER),  # weights of right and wrong outputs, totals
]
_OUTPUT_WORDS = [
    *(_POINTER, _INT, _POINTER, _INT, _SIZE, _SIZE),  # tables and read-out, with their bytes; symbols, states
    *(_POINTER, _INT, _SIZE, _SIZE),  # words, bytes of a symbol, how many, their length
    *(_POINTER, _POINTER, _POINTER, _INT),  # starts, outputs, finals, threads
]
_TOKENIZE = [_POINTER, _POINTER, _SIZE, _INT, _POINTER, _POINTER, _POINTER]
_WRITE_NAMES = [_POINTER, _SIZE, _POINTER, _SIZE, _POINTER, _POINTER, _POINTER, _SIZE, _POINTER, _POINTER]

SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "exactstate_run_words": (c_int64, _RUN_WORDS),
    "exactstate_output_words": (c_int64, _OUTPUT_WORDS),
    "exactstate_word_hash": (c_uint64, [_POINTER, _SIZE]),
    "exactstate_edge_hash": (c_uint64, [_SIZE]),
    "exactstate_tokenize": (c_int, _TOKENIZE),
    "exactstate_write_names": (c_int64, _WRITE_NAMES),
    "exactstate_register_features": (c_int, []),
    "exactstate_interpret": (c_int64, _INTERPRET),
    "exactstate_tree_new": (_POINTER, []),
    "exactstate_tree_free": (None, [_POINTER]),
    "exactstate_tree_nodes": (c_int64, [_POINTER]),
    "exactstate_tree_observations": (c_int64, [_POINTER]),
    "exactstate_tree_add": (c_int64, [*[_POINTER] * 6, _SIZE, _SIZE]),
    "exactstate_tree_merge": (None, [_POINTER, *_TREE, *_OBSERVED, _POINTER, _SIZE]),
    "exactstate_tree_ranks": (None, [_POINTER, _POINTER, _SIZE, _POINTER]),
    "exactstate_tree_export": (None, [_POINTER, *_TREE[:3], *_OBSERVED, _POINTER]),
    "exactstate_merger_new": (_POINTER, _MERGER),
    "exactstate_merger_free": (None, [_POINTER]),
    "exactstate_merger_run": (c_int, [_POINTER, _SIZE, _SIZE]),
    "exactstate_merger_work": (c_int64, [_POINTER]),
    "exactstate_merger_export": (None, [_POINTER, _POINTER]),
    "exactstate_partition_machine": (c_int64, _PARTITION_MACHINE),
    "exactstate_partition_run": (None, [*_TREE[:2], _SIZE, _POINTER, _SIZE, _POINTER]),
    "exactstate_refine_totals": (None, _REFINE_TOTALS),
    "exactstate_gumbel": (None, [*_SEGMENTS, _SIZE, _SEED, _POINTER]),
    "exactstate_repeated_rows": (c_int64, [_POINTER, _SIZE, _SIZE, _SIZE, _POINTER, _POINTER]),
    "exactstate_prefix": (c_int64, [*_CELLS, _SIZE, _SIZE, *_HEADS, _POINTER, _INT]),
    "exactstate_trajectories": (c_int64, [*_CELLS, _POINTER, *_HEADS, *_SEGMENTS, _POINTER, _POINTER, _POINTER, _INT]),
    **{f"exactstate_tables_{real}": (c_int64, _TABLES) for real in ("f32", "f64")},
    **{f"exactstate_logits_{real}": (None, [*_WEIGHTS, _SIZE, _SIZE, _POINTER, _INT]) for real in ("f32", "f64")},
    **{f"exactstate_argmax_trajectories_{real}": (c_int64, _ARGMAX_TRAJECTORIES) for real in ("f32", "f64")},
    **{f"exactstate_adjoint_{real}": (c_int64, _ADJOINT) for real in ("f32", "f64")},
    **{f"exactstate_surrogate_backward_{real}": (c_int64, _SURROGATE_BACKWARD) for real in ("f32", "f64")},
    **{f"exactstate_index_gains_{real}": (None, _INDEX_GAINS) for real in ("f32", "f64")},
    **{f"exactstate_project_values_backward_{real}": (None, _PROJECT_VALUES_BACKWARD) for real in ("f32", "f64")},
    **{f"exactstate_project_values_{real}": (None, _PROJECT_VALUES) for real in ("f32", "f64")},
    **{f"exactstate_step_{real}": (c_int64, _STEP) for real in ("f32", "f64")},
    **{f"exactstate_read_out_{real}": (c_int64, _READ_OUT) for real in ("f32", "f64")},
    **{f"exactstate_read_out_backward_{real}": (c_int64, _READ_OUT_BACKWARD) for real in ("f32", "f64")},
    **{
        f"exactstate_soft_{name}_{real}": (None, arguments)
        for real in ("f32", "f64")
        for name, arguments in {
            "forward": [_POINTER, *_SOFT_STEPS, _POINTER, _POINTER, _INT],
            "backward": [_POINTER, *_SOFT_STEPS, _POINTER, _POINTER, _POINTER, _INT],
            "indexed": [*_SOFT_ROWS, *_SOFT_STEPS, _POINTER, _INT],
            "indexed_backward": [_POINTER, *_SOFT_ROWS, *_SOFT_STEPS, _POINTER, _POINTER, _INT],
        }.items()
    },
}


_REMEDY = "install a C++17 compiler (g++ or clang++), then install exactstate again"


@cache
def _load() -> ctypes.CDLL | str:
    """The library, or one sentence saying why there is none."""
    if os.environ.get("EXACTSTATE_NATIVE") == "0":
        return "the compiled kernels are switched off by EXACTSTATE_NATIVE=0; unset it"
    found = sorted(Path(__file__).parent.glob("_kernels*.so"))
    if other := os.environ.get("EXACTSTATE_KERNELS"):  # another build, such as one with sanitizers
        found = [Path(other)]
    if not found:
        return f"the compiled kernels were not built; {_REMEDY}"
    try:
        loaded = ctypes.CDLL(str(found[-1]))
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        reason = f"the compiled kernels could not be loaded ({error}); {_REMEDY}"
        warnings.warn(f"exactstate is slower than it should be: {reason}.", RuntimeWarning, stacklevel=2)
        return reason
    return loaded


def why_not() -> str | None:
    """None when the compiled kernels are there, else the reason and the remedy."""
    loaded = _load()
    return loaded if isinstance(loaded, str) else None


def available() -> bool:
    return why_not() is None


def library() -> ctypes.CDLL:
    """The shared library with its signatures declared."""
    loaded = _load()
    if isinstance(loaded, str):
        raise BackendUnavailable(loaded[0].upper() + loaded[1:] + ".")
    return loaded


def address(array: Any) -> int | None:
    """Where compiled code finds the elements of a NumPy array or a tensor; None for None.

    Compiled code reads elements in row-major order without gaps, so anything else is refused.
    """
    if array is None:
        return None
    place: Callable[[], int] | None = getattr(array, "data_ptr", None)  # of a tensor
    if place is not None:
        if array.is_contiguous():
            return place()
    elif array.flags.c_contiguous and array.dtype.isnative:
        return int(array.ctypes.data)
    raise InvalidInput(
        f"compiled code reads numbers in row-major order without gaps; an array of shape {tuple(array.shape)} "
        "lies otherwise: make it contiguous first."
    )


def _default_threads() -> int:
    asked = os.environ.get("EXACTSTATE_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_threads = _default_threads()


def threads() -> int:
    """How many threads a kernel may use: EXACTSTATE_THREADS, or every core this process may run on."""
    return _threads


def set_threads(count: int) -> int:
    """Let kernels use `count` threads from now on; returns what it was. Results do not depend on it."""
    global _threads
    if count < 1:
        raise InvalidConfig(f"kernels need at least one thread; got {count}.")
    before, _threads = _threads, int(count)
    return before


def main() -> None:
    """`python -m exactstate.native`: one line saying whether the compiled kernels are there."""
    reason = why_not()
    if reason is None:
        print(f"exactstate: compiled kernels ready, {threads()} threads.")
    else:
        print(f"exactstate: machines are not learned from logs, scans and runs are 10 to 100 times slower: {reason}.")


if __name__ == "__main__":
    main()
