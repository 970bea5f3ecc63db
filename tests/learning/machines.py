"""Machines with the traits of public protocol models, and logs of them."""

from __future__ import annotations

import numpy as np

from benchmarks.machines import clients, log_of
from exactstate.automata import Mealy


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
    return clients()


def traces_of(machine, count, length, seed, noise=0.0):
    """(inputs, outputs) by name, words that reach every state, some outputs wrong."""
    return log_of(machine, count, length, np.random.default_rng(seed), noise)
