"""Run words through tables, many at once, without a Python loop over time.

    A  symbols     n  states     B  words     L  their length

tables[a, q] is where symbol a sends state q. Compiled kernels are used if they are installed. Otherwise NumPy runs in
chunks (Ladner and Fischer, "Parallel prefix computation", 1980): every chunk of every word is composed into one table,
the tables give each chunk its start, and then all chunks run in parallel. Both give the same integers.
"""

from __future__ import annotations

import numpy as np

from exactstate import native
from exactstate._types import Ints
from exactstate.errors import InvalidWord
from exactstate.native import address


def smallest_dtype(count: int) -> np.dtype:
    """The smallest unsigned type that holds 0 .. count - 1."""
    return np.dtype(np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.uint32)


def compose(first: Ints, then: Ints) -> Ints:
    """The table that does `first`, and after it `then`: compose(first, then)[k] == then[first[k]]."""
    return np.take_along_axis(then, first.astype(np.intp), axis=-1)


def trajectories(tables: Ints, words: Ints, starts: Ints, *, keep: bool = True) -> tuple[Ints | None, Ints]:
    """(states after every symbol: B L, or None if not kept; states at the end: B)."""
    tables, words = _integers("tables", tables), _integers("words", words)
    starts = np.ascontiguousarray(_integers("starts", starts), np.int32)
    if native.available() and words.dtype.itemsize in (1, 2, 4, 8):
        return _compiled(tables, words, starts, keep)
    _refuse_unknown(words, len(tables))
    return chunked_trajectories(tables, words, starts, keep)


def _compiled(tables: Ints, words: Ints, starts: Ints, keep: bool) -> tuple[Ints | None, Ints]:
    B, L = words.shape
    path = np.empty((B, L), tables.dtype) if keep else None
    ends = np.empty(B, np.int32)
    bad = native.library().exactstate_run_words(
        address(tables), tables.dtype.itemsize, *tables.shape, address(words), words.dtype.itemsize, B, L,
        address(starts), address(path), address(ends), native.threads(),
    )  # fmt: skip
    if bad >= 0:
        _refuse_unknown(words, len(tables))
    return path, ends


def compiled_outputs(tables: Ints, readout: Ints, words: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """(the output at every symbol: B L, states at the end: B), by compiled code; the read-out is A n."""
    tables, readout, words = _integers("tables", tables), _integers("readout", readout), _integers("words", words)
    starts = np.ascontiguousarray(_integers("starts", starts), np.int32)
    (B, L), ends = words.shape, np.empty(len(words), np.int32)
    outputs = np.empty((B, L), readout.dtype)
    bad = native.library().exactstate_output_words(
        address(tables), tables.dtype.itemsize, address(readout), readout.dtype.itemsize, *tables.shape,
        address(words), words.dtype.itemsize, B, L, address(starts), address(outputs), address(ends),
        native.threads(),
    )  # fmt: skip
    if bad >= 0:
        _refuse_unknown(words, len(tables))
    return outputs, ends


def _integers(name: str, values: Ints) -> Ints:
    """The array in row-major order and this machine's byte order."""
    if values.dtype.kind not in "iu":
        raise InvalidWord(f"{name} hold {values.dtype} numbers; wanted integers.")
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def _refuse_unknown(words: Ints, symbols: int) -> None:
    wrong = (words < 0) | (words >= symbols)
    if wrong.any():
        word, place = (int(i) for i in np.argwhere(wrong)[0])
        raise InvalidWord(
            f"symbol {words[word, place]} at position {place} of word {word} is out of range: "
            f"this machine has {symbols} symbols (0..{symbols - 1})."
        )


def chunked_trajectories(tables: Ints, words: Ints, starts: Ints, keep: bool) -> tuple[Ints | None, Ints]:
    """`trajectories` in NumPy, for words whose symbols are in range."""
    (B, L), n = words.shape, tables.shape[1]
    # composing costs n times a run, so many states or many words are run directly
    chunks = int(np.clip(np.sqrt(L / n) if n * B < 4096 else 1, 1, 4096))
    length = L // chunks
    head = words[:, : chunks * length].reshape(B, chunks, length)
    path = np.empty((B, L), tables.dtype) if keep else None

    begin = np.empty((B, chunks), np.intp)
    state = starts.astype(np.intp)
    whole = _compose_chunks(tables, head) if chunks > 1 else None
    for chunk in range(chunks):
        begin[:, chunk] = state
        if whole is not None:
            state = whole[np.arange(B), chunk, state]

    inside = begin
    for t in range(length):
        inside = tables[head[:, :, t], inside].astype(np.intp)
        if path is not None:
            path[:, : chunks * length].reshape(B, chunks, length)[:, :, t] = inside
    ends = inside[:, -1]
    for t in range(chunks * length, L):
        ends = tables[words[:, t], ends].astype(np.intp)
        if path is not None:
            path[:, t] = ends
    return path, ends.astype(np.int32)


def _compose_chunks(tables: Ints, head: Ints) -> Ints:
    """The table of every chunk: B chunks n."""
    B, chunks, length = head.shape
    table = np.broadcast_to(np.arange(tables.shape[1]), (B, chunks, tables.shape[1])).astype(np.intp)
    for t in range(length):
        table = tables[head[:, :, t, None], table].astype(np.intp)
    return table
