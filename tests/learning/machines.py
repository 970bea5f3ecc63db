"""Machines with the traits of public protocol models, and logs of them."""

from __future__ import annotations

import numpy as np

from detent.automata import Mealy
from detent.tasks import Task


def handshake():
    """A handshake in order, else closed for ever: uniform letters almost never reach its end."""
    symbols = ("hello", "key", "verify", "finish", "data")
    tables, readout = np.full((5, 6), 5), np.zeros((5, 6), int)
    for step in range(4):
        tables[step, step], readout[step, step] = step + 1, 1
    tables[4, 4], readout[4, 4] = 4, 2
    return Mealy(symbols=symbols, tables=tables, outputs=("closed", "ack", "echo"), readout=readout,
                 states=("start", "hello", "key", "verify", "open", "closed"))  # fmt: skip


def sessions():
    """Two clients that connect, subscribe and disconnect; a publication reaches the subscribed."""
    states = [(a, b) for a in range(3) for b in range(3)]  # 0 off, 1 connected, 2 subscribed
    symbols, outputs = ("c1", "s1", "d1", "c2", "s2", "d2", "pub"), ("ok", "no", "none", "one", "both")
    tables, readout = np.zeros((7, 9), int), np.zeros((7, 9), int)
    for q, pair in enumerate(states):
        for a, symbol in enumerate(symbols):
            now, out = list(pair), 0
            if symbol == "pub":
                out = 2 + sum(part == 2 for part in pair)
            else:
                who, (before, after) = int(symbol[1]) - 1, {"c": (0, 1), "s": (1, 2), "d": (-1, 0)}[symbol[0]]
                if now[who] == before or (before < 0 and now[who] > 0):
                    now[who] = after
                else:
                    out = 1
            tables[a, q], readout[a, q] = states.index((now[0], now[1])), out
    return Mealy(symbols=symbols, tables=tables, outputs=outputs, readout=readout)


def traces_of(machine, count, length, seed, noise=0.0):
    """(inputs, outputs) by name, words that reach every state, some outputs wrong."""
    generator = np.random.default_rng(seed)
    task = Task.reaching(machine, name="m")
    batch = task.sample(count, length, generator)
    outputs, k = task.outputs(batch).astype(int), len(machine.outputs)
    wrong = generator.random(outputs.shape) < noise
    outputs = np.where(wrong, (outputs + generator.integers(1, k, outputs.shape)) % k, outputs)
    return [
        ([machine.symbols[a] for a in word], [machine.outputs[o] for o in seen])
        for word, seen in zip(batch.inputs.tolist(), outputs.tolist(), strict=True)
    ]
