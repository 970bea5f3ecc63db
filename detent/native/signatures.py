"""The C interface as data: name -> (result, arguments). Pointers travel as addresses, sizes as int64."""

from __future__ import annotations

from ctypes import c_double, c_int, c_int64, c_uint64, c_void_p
from typing import Any

_POINTER, _SIZE, _INT, _SEED, _REAL = c_void_p, c_int64, c_int, c_uint64, c_double

_RUN_WORDS = [
    *(_POINTER, _INT, _SIZE, _SIZE),  # tables, bytes of a state, symbols, states
    *(_POINTER, _INT, _SIZE, _SIZE),  # words, bytes of a symbol, how many, their length
    *(_POINTER, _POINTER, _POINTER, _INT),  # starts, path or null, finals, threads
]
_INTERPRET = [
    *(_POINTER, _POINTER),  # program, saying or null
    *(_POINTER, _INT, _POINTER, _SIZE),  # symbols, bytes of a symbol, what bytes stand for or null, how many
    *(_POINTER, _POINTER),  # state, out or null
]
_HEADS = [_POINTER, _SIZE]  # sizes, how many
_SEGMENTS = [_POINTER, _SIZE]
_WEIGHTS = [_POINTER, _POINTER, _POINTER, _SIZE]  # input, weight, bias, width of the input
_INDEXED = [_POINTER, _POINTER]  # logits of distinct rows, which of them each row is
_CELLS = [_POINTER, _INT]  # integers, bytes of each

_TABLES = [*_WEIGHTS, *_INDEXED, *_HEADS, *_SEGMENTS, _INT, _REAL, _SEED, *_CELLS, _INT]
_FOLLOW = [*_WEIGHTS, *_HEADS, *_SEGMENTS, _POINTER, _POINTER, _POINTER, _INT]
_ADJOINT = [*_CELLS, *_HEADS, *_SEGMENTS, _POINTER, _POINTER, _POINTER, _INT]
_SURROGATE = [
    *(*_WEIGHTS, *_INDEXED, *_HEADS, *_SEGMENTS, _POINTER, *_CELLS, _INT, _REAL, _SEED),
    *(_POINTER, _POINTER, _POINTER, _POINTER, _INT),  # lambda, gradients of input, weight, bias, threads
]
_FOLD = [_POINTER, _SIZE, _POINTER, _SIZE, *_HEADS, _POINTER]
_UNFOLD = [_POINTER, _POINTER, _SIZE, _POINTER, _SIZE, *_HEADS, _POINTER, _POINTER]
_GAINS = [_POINTER, _POINTER, _SIZE, _SIZE, *_SEGMENTS, _POINTER, _INT]
_SPEAK = [_POINTER, _SIZE, _POINTER, _POINTER, _SIZE, *_HEADS, _POINTER, _SIZE, _POINTER]
_READ = [_POINTER, _POINTER, _SIZE, *_HEADS, *_CELLS, _SIZE, _POINTER, _INT]
_COLLECT = [_POINTER, _SIZE, *_HEADS, *_CELLS, _SIZE, _POINTER, _INT]

SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "detent_run_words": (c_int64, _RUN_WORDS),
    "detent_register_features": (c_int, []),
    "detent_interpret": (c_int64, _INTERPRET),
    "detent_gumbel": (None, [*_SEGMENTS, _SIZE, _SEED, _POINTER]),
    "detent_prefix": (c_int64, [*_CELLS, _SIZE, _SIZE, *_HEADS, _POINTER, _INT]),
    "detent_track": (c_int64, [*_CELLS, _POINTER, *_HEADS, *_SEGMENTS, _POINTER, _POINTER, _POINTER, _INT]),
    **{f"detent_tables_{real}": (c_int64, _TABLES) for real in ("f32", "f64")},
    **{f"detent_logits_{real}": (None, [*_WEIGHTS, _SIZE, _SIZE, _POINTER, _INT]) for real in ("f32", "f64")},
    **{f"detent_follow_{real}": (c_int64, _FOLLOW) for real in ("f32", "f64")},
    **{f"detent_adjoint_{real}": (c_int64, _ADJOINT) for real in ("f32", "f64")},
    **{f"detent_surrogate_{real}": (c_int64, _SURROGATE) for real in ("f32", "f64")},
    **{f"detent_gains_{real}": (None, _GAINS) for real in ("f32", "f64")},
    **{f"detent_unfold_{real}": (None, _UNFOLD) for real in ("f32", "f64")},
    **{f"detent_fold_{real}": (None, _FOLD) for real in ("f32", "f64")},
    **{f"detent_speak_{real}": (None, _SPEAK) for real in ("f32", "f64")},
    **{f"detent_read_{real}": (c_int64, _READ) for real in ("f32", "f64")},
    **{f"detent_collect_{real}": (c_int64, _COLLECT) for real in ("f32", "f64")},
}
