"""Machines with the traits of public protocol models, random ones, and logs of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactstate.automata import Mealy
from exactstate.tasks import Task

Log = list[tuple[list[str], list[str]]]
"""(inputs, outputs) by name."""


def handshake(steps: int) -> Mealy:
    """Messages in order lead on, an alert is answered, anything else closes for ever."""
    n, symbols = steps + 2, [*(f"m{i}" for i in range(steps)), "data", "alert"]
    tables, readout = np.full((len(symbols), n), n - 1), np.zeros((len(symbols), n), int)
    for i in range(steps):
        tables[i, i], readout[i, i] = i + 1, 1
    tables[steps, steps], readout[steps, steps] = steps, 2
    readout[steps + 1, : n - 1] = 3
    outputs = ("closed", "ok", "data", "alerted")
    return Mealy(symbols=tuple(symbols), tables=tables, outputs=outputs, readout=readout)


def connection() -> Mealy:
    """Open, send, receive and close with three numbers of unread segments; a reset ends it."""
    n, symbols = 12, ("connect", "syn", "ack", "push", "read", "fin", "close", "reset")
    tables, readout = np.tile(np.arange(n), (8, 1)), np.zeros((8, n), int)
    tables[0, 0], readout[0, 0] = 1, 1
    tables[1, 1], readout[1, 1] = 2, 2
    for unread in range(3):
        tables[3, 2 + unread], readout[3, 2 + unread] = 2 + min(unread + 1, 2), 3 if unread < 2 else 4
        tables[4, 2 + unread], readout[4, 2 + unread] = 2 + max(unread - 1, 0), 5 if unread else 0
        tables[5, 2 + unread], readout[5, 2 + unread] = 5 + unread, 3
        tables[4, 5 + unread], readout[4, 5 + unread] = 5 + max(unread - 1, 0), 5 if unread else 6
        tables[6, 2 + unread], readout[6, 2 + unread] = 8, 7
        tables[6, 5 + unread], readout[6, 5 + unread] = 9, 7
    tables[2, 8], tables[5, 8] = 10, 11
    tables[2, 9], tables[2, 11], readout[5, 8] = 0, 0, 3
    tables[5, 10], readout[5, 10] = 0, 3
    tables[7, 1:], readout[7, 1:] = 0, 8
    outputs = ("timeout", "SYN", "ACK+SYN", "ACK", "full", "data", "end", "FIN", "RST")
    return Mealy(symbols=symbols, tables=tables, outputs=outputs, readout=readout)


def clients() -> Mealy:
    """Two clients connect, subscribe, disconnect; a publication reaches those who are subscribed."""
    states = [(a, b) for a in range(3) for b in range(3)]
    symbols, outputs = ("c1", "s1", "d1", "c2", "s2", "d2", "pub"), ("ok", "error", "none", "one", "both")
    tables, readout = np.zeros((7, 9), int), np.zeros((7, 9), int)
    for q, pair in enumerate(states):
        for a, symbol in enumerate(symbols):
            now, out = list(pair), 0
            if symbol == "pub":
                out = 2 + sum(part == 2 for part in pair)
            else:
                who, (before, after) = int(symbol[1]) - 1, {"c": (0, 1), "s": (1, 2), "d": (-1, 0)}[symbol[0]]
                fits = now[who] == before or (before < 0 and now[who] > 0)
                now[who], out = (after, 0) if fits else (now[who], 1)
            tables[a, q], readout[a, q] = states.index((now[0], now[1])), out
    return Mealy(symbols=symbols, tables=tables, outputs=outputs, readout=readout)


def pairing() -> Mealy:
    """Scan, connect, then version, length, features and pairing in any order, each answered once."""
    asked = [(a, b, c) for a in range(2) for b in range(2) for c in range(2)]
    states: list[Any] = ["idle", "scanned", *asked, "paired", "encrypted", "failed"]
    symbols = ("scan", "connect", "version", "length", "feature", "pair", "encrypt", "end")
    outputs = ("none", "advertise", "connected", "version", "length", "feature", "response", "start", "reject")
    tables, readout = np.zeros((8, len(states)), int), np.zeros((8, len(states)), int)
    for q, state in enumerate(states):
        for a, symbol in enumerate(symbols):
            to, out = state, "none"
            if symbol == "end":
                to = "idle"
            elif state == "idle" and symbol == "scan":
                to, out = "scanned", "advertise"
            elif state == "scanned" and symbol == "connect":
                to, out = (0, 0, 0), "connected"
            elif isinstance(state, tuple) and symbol in ("version", "length", "feature"):
                i = ("version", "length", "feature").index(symbol)
                to, out = tuple(1 if i == j else s for j, s in enumerate(state)), symbol if not state[i] else "reject"
            elif isinstance(state, tuple) and symbol == "pair":
                to, out = ("paired", "response") if state[2] else ("failed", "reject")
            elif state == "paired" and symbol == "encrypt":
                to, out = "encrypted", "start"
            tables[a, q], readout[a, q] = states.index(to), outputs.index(out)
    return Mealy(symbols=symbols, tables=tables, outputs=outputs, readout=readout)


def random_mealy(n: int, symbols: int, outputs: int, rng: np.random.Generator) -> Mealy:
    return Mealy(
        symbols=tuple(f"i{a}" for a in range(symbols)), tables=rng.integers(0, n, (symbols, n)),
        outputs=tuple(f"o{k}" for k in range(outputs)), readout=rng.integers(0, outputs, (symbols, n)),
    )  # fmt: skip


def log_of(machine: Mealy, words: int, length: int, rng: np.random.Generator, noise: float = 0.0) -> Log:
    """Traces that reach every state, some outputs wrong."""
    task = Task.reaching(machine, name="m")
    batch = task.sample(words, length, rng)
    outputs, k = task.outputs(batch).astype(int), len(machine.outputs)
    wrong = rng.random(outputs.shape) < noise
    outputs = np.where(wrong, (outputs + rng.integers(1, max(k, 2), outputs.shape)) % k, outputs)
    return [
        ([machine.symbols[a] for a in word], [machine.outputs[o] for o in seen])
        for word, seen in zip(batch.inputs.tolist(), outputs.tolist(), strict=True)
    ]
