"""Figure `machine`: the machine that was read out of a network, beside its target.

Where the two are the same up to the numbering of states, the first is drawn with the numbering of the second, so that
they can be compared at a glance. What stands below comes from comparing them on all words, not from the picture.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detent.automata import Mealy, Moore, distinguishing_word, draw, isomorphism, minimize
from detent.automata.draw.scene import abbreviate
from detent.errors import DetentError
from detent.report.figures.style import GREY, PAGE, styled

Machine = Moore | Mealy


@styled
def paint(found: Machine, target: Machine, names: tuple[str, str] = ("read out", "target")) -> Any:
    """Both machines, and whether they behave alike."""
    from matplotlib.figure import Figure

    alike, sentence = compared(found, target)
    figure = Figure(figsize=(PAGE, 3.4))
    shown = renumbered(found, target) if alike else found
    for left, machine, name in ((0.01, shown, names[0]), (0.51, target, names[1])):
        axes = figure.add_axes((left, 0.15, 0.48, 0.77))
        notes = draw(machine, axes)
        key = axes.get_legend()
        if key is not None:  # of colours, and it would lie on the states
            key.set_bbox_to_anchor((0.5, -0.09), transform=axes.transAxes)
        figure.text(left + 0.24, 0.95, f"{abbreviate(name, 40)}: {machine.n_states} states", ha="center", va="center",
                    fontsize=9, parse_math=False)  # fmt: skip
        figure.text(left + 0.24, 0.085, "\n".join(notes), ha="center", va="center", fontsize=6, color=GREY, wrap=True)
    figure.text(0.5, 0.03, sentence, ha="center", va="center", fontsize=8, fontweight="bold", parse_math=False)
    return figure


def compared(found: Machine, target: Machine) -> tuple[bool, str]:
    """(whether they behave alike, the sentence that says so or tells a shortest word on which they do not)."""
    try:
        first, second = found.to_mealy(), target.to_mealy()
        word = distinguishing_word(first, second)
    except DetentError as error:
        return False, str(error)
    if word is None:
        return True, "They say the same on every word."
    return False, f"They differ after: {abbreviate(' '.join(word), 90)}"


def renumbered(found: Machine, target: Machine) -> Machine:
    """The machine found, minimal, saying what it says in the target's way and numbered like it where that can be."""
    small, wanted = minimize(found.to_mealy()), target.to_mealy()
    onto = isomorphism(small, wanted)
    if onto is None:
        return found
    back = np.argsort(onto)
    return _like(target, small, back)


def _like(target: Machine, small: Mealy, back: Any) -> Machine:
    """The machine `small` with state back[q] as state q, of the target's kind."""
    onto = np.argsort(back)
    order = [small.symbols.index(symbol) for symbol in target.symbols]
    tables = onto[small.tables[order][:, back]]
    outputs = [target.outputs.index(name) for name in small.outputs]
    said = np.array(outputs)[small.readout[order][:, back]]
    if isinstance(target, Mealy):
        return Mealy(symbols=target.symbols, tables=tables, states=target.states, start=int(onto[small.start]),
                     outputs=target.outputs, readout=said)  # fmt: skip
    says = np.array(target.readout, np.int64)
    says[tables.ravel()] = said.ravel()  # what a state says is what is said on the way into it
    return Moore(symbols=target.symbols, tables=tables, states=target.states, start=int(onto[small.start]),
                 outputs=target.outputs, readout=says)  # fmt: skip
