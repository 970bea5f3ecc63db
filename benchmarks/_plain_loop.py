"""The baseline of the runtime benchmark, a plain C loop: state = table[symbol][state]."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from exactstate._types import Ints
from exactstate.errors import BackendUnavailable

SOURCE = """
#include <stdint.h>
#define LOOPS(State, name) \\
    int64_t name(const State *table, int64_t states, const uint8_t *word, int64_t length, int64_t start) { \\
        uint64_t state = (uint64_t)start; \\
        for (int64_t t = 0; t < length; ++t) state = table[word[t] * states + state]; \\
        return (int64_t)state; \\
    } \\
    int64_t name##_outputs(const State *table, int64_t states, const uint8_t *word, int64_t length, int64_t start, \\
                          const uint16_t *outputs, uint16_t *out) { \\
        uint64_t state = (uint64_t)start; \\
        for (int64_t t = 0; t < length; ++t) { \\
            const uint64_t at = word[t] * states + state; \\
            out[t] = outputs[at]; \\
            state = table[at]; \\
        } \\
        return (int64_t)state; \\
    } \\
    int64_t name##_outputs_bytes(const State *table, int64_t states, const uint8_t *word, int64_t length, \\
                                int64_t start, const uint8_t *outputs, uint8_t *out) { \\
        uint64_t state = (uint64_t)start; \\
        for (int64_t t = 0; t < length; ++t) { \\
            const uint64_t at = word[t] * states + state; \\
            out[t] = outputs[at]; \\
            state = table[at]; \\
        } \\
        return (int64_t)state; \\
    }
LOOPS(uint8_t, plain_1)
LOOPS(uint16_t, plain_2)
"""


@cache
def library() -> ctypes.CDLL:
    """The loop, by the C compiler of this machine at -O3."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise BackendUnavailable("there is no C compiler to build the plain loop with; install one.")
    folder = Path(tempfile.mkdtemp())
    (folder / "plain.c").write_text(SOURCE)
    shared = folder / "plain.so"
    subprocess.run([compiler, "-O3", "-shared", "-fPIC", folder / "plain.c", "-o", shared], check=True)
    loaded = ctypes.CDLL(str(shared))
    shutil.rmtree(folder)
    return loaded


def run(tables: Ints, word: Ints, start: int) -> int:
    """The final state."""
    loop = getattr(library(), f"plain_{tables.itemsize}")
    loop.restype = ctypes.c_int64
    return int(loop(*_arguments(tables, word, start)))


def output_ids(tables: Ints, outputs: Ints, word: Ints, start: int) -> Ints:
    """The output at every symbol: outputs[a, q]."""
    loop = getattr(library(), f"plain_{tables.itemsize}_outputs{'_bytes' if outputs.itemsize == 1 else ''}")
    loop.restype = ctypes.c_int64
    out = np.empty(len(word), outputs.dtype)
    loop(*_arguments(tables, word, start), ctypes.c_void_p(outputs.ctypes.data), ctypes.c_void_p(out.ctypes.data))
    return out


def _arguments(tables: Ints, word: Ints, start: int) -> tuple[ctypes.c_void_p | ctypes.c_int64, ...]:
    assert word.dtype == np.uint8
    return (
        ctypes.c_void_p(tables.ctypes.data), ctypes.c_int64(tables.shape[1]), ctypes.c_void_p(word.ctypes.data),
        ctypes.c_int64(len(word)), ctypes.c_int64(start),
    )  # fmt: skip
