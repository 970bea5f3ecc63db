"""Figure `machine`: a machine beside another one, such as an extracted machine beside its target.

Where they are equivalent, the first is minimized and drawn with the state numbers of the second. The sentence below the
drawings is the result of comparing them on all words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exactstate.automata import Mealy, Moore, distinguishing_word, draw, isomorphism, minimize
from exactstate.automata.draw.scene import abbreviate
from exactstate.errors import ExactstateError
from exactstate.report.figures.style import GREY, PAGE, styled

Machine = Moore | Mealy


@styled
def paint(machine: Machine, target: Machine, names: tuple[str, str] = ("extracted", "target")) -> Any:
    """Both machines, and whether they are equivalent."""
    from matplotlib.figure import Figure

    equivalent, sentence = compare(machine, target)
    figure = Figure(figsize=(PAGE, 3.4))
    left_machine = renumbered(machine, target) if equivalent else machine
    for left, drawn, name in ((0.01, left_machine, names[0]), (0.51, target, names[1])):
        axes = figure.add_axes((left, 0.15, 0.48, 0.77))
        notes = draw(drawn, axes)
        legend = axes.get_legend()
        if legend is not None:  # it would lie on the states
            legend.set_bbox_to_anchor((0.5, -0.09), transform=axes.transAxes)
        figure.text(left + 0.24, 0.95, f"{abbreviate(name, 40)}: {drawn.n_states} states", ha="center", va="center",
                    fontsize=9, parse_math=False)  # fmt: skip
        figure.text(left + 0.24, 0.085, "\n".join(notes), ha="center", va="center", fontsize=6, color=GREY, wrap=True)
    figure.text(0.5, 0.03, sentence, ha="center", va="center", fontsize=8, fontweight="bold", parse_math=False)
    return figure


def compare(machine: Machine, target: Machine) -> tuple[bool, str]:
    """(whether they are equivalent, a sentence with the result or a shortest distinguishing word)."""
    try:
        word = distinguishing_word(machine.to_mealy(), target.to_mealy())
    except ExactstateError as error:
        return False, str(error)
    if word is None:
        return True, "They give the same outputs on every word."
    return False, f"They differ after: {abbreviate(' '.join(word), 90)}"


def renumbered(machine: Machine, target: Machine) -> Machine:
    """The minimal machine with the target's kind and numbering; the machine itself where they are not isomorphic."""
    minimal = minimize(machine.to_mealy())
    onto = isomorphism(minimal, target.to_mealy())
    return machine if onto is None else _like(target, minimal, np.asarray(onto))


def _like(target: Machine, machine: Mealy, onto: Any) -> Machine:
    """The machine with state q as state onto[q], of the target's kind."""
    back = np.argsort(onto)
    number = {symbol: a for a, symbol in enumerate(machine.symbols)}
    order = [number[symbol] for symbol in target.symbols]
    tables = onto[machine.tables[order][:, back]]
    outputs = [target.outputs.index(name) for name in machine.outputs]
    readout = np.array(outputs)[machine.readout[order][:, back]]
    if isinstance(target, Mealy):
        return Mealy(symbols=target.symbols, tables=tables, states=target.states, start=int(onto[machine.start]),
                     outputs=target.outputs, readout=readout)  # fmt: skip
    of_states = np.array(target.readout, np.int64)
    of_states[tables.ravel()] = readout.ravel()  # the output of a state is that of the transitions into it
    return Moore(symbols=target.symbols, tables=tables, states=target.states, start=int(onto[machine.start]),
                 outputs=target.outputs, readout=of_states)  # fmt: skip
