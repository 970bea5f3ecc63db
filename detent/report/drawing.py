"""Pictures of machines inside the page, and the machine that was read out in the names and order of its target."""

from __future__ import annotations

import base64

import numpy as np

from detent.automata import Mealy, Moore, Semiautomaton
from detent.report.html import Html, alone, element

MOST_STATES = 32
"""States of a machine that is drawn."""
MOST_BYTES = 400_000


def drawing(machine: Semiautomaton, caption: str) -> Html | None:
    """A figure of the machine; None where it would show nothing that could be read."""
    from detent.automata.draw import svg
    from detent.automata.draw.scene import fits

    if machine.n_states > MOST_STATES or not fits(machine) or len(picture := svg(machine)) > MOST_BYTES:
        return None
    image = alone(
        "img", class_="drawing", src=f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}",
        alt=f"A diagram. {caption}",
    )  # fmt: skip
    return element("figure", image, element("figcaption", caption))


def in_words_of(target: Moore | Mealy, machine: Moore | Mealy) -> Moore | Mealy:
    """The machine with its states called and ordered as in the target, where what it says tells them apart."""
    names = machine.states if isinstance(machine, Moore) else _said_on_arrival(machine)
    if machine.symbols != target.symbols or sorted(names) != sorted(target.states):
        return machine
    order = np.array([names.index(name) for name in target.states])
    number = np.argsort(order)
    return Moore(
        symbols=machine.symbols, states=target.states, tables=number[machine.tables[:, order]],
        start=int(number[machine.start]), outputs=target.states, readout=np.arange(len(order)),
    )  # fmt: skip


def same_steps(one: Moore | Mealy, other: Moore | Mealy) -> bool:
    """Whether the two are the same states and arrows, whatever they say."""
    return (
        (one.symbols, one.states, one.start) == (other.symbols, other.states, other.start)
        and np.array_equal(one.tables, other.tables)
    )  # fmt: skip


def _said_on_arrival(machine: Mealy) -> list[str]:
    """What is said on the way into each state, where that is one thing."""
    said: dict[int, set[int]] = {q: set() for q in range(machine.n_states)}
    for state, output in zip(machine.tables.ravel().tolist(), machine.readout.ravel().tolist(), strict=True):
        said[state].add(output)
    return [" or ".join(sorted(machine.outputs[k] for k in said[q])) for q in range(machine.n_states)]
