"""How to load and run the machine of a run, with a word and what it says."""

from __future__ import annotations

import contextlib
import shlex

import numpy as np

from detent.errors import InvalidConfig
from detent.report.markup import Html, element, joined
from detent.report.reading import CERTIFICATE, MACHINE, Told

SHORTEST_WORD, SHORTEST_STORY, LONGEST_WORD = 6, 25, 64
"""Of the one that is shown being read; a question comes after something has happened."""
DRAWN = 16
"""Words to choose it from."""
SPELLED = 8
"""Symbols of a word that is written as a list; a longer one is a text."""


def usage(told: Told) -> Html | None:
    """How to load and run the machine, with a word and what it says."""
    if told.machine is None:
        return None
    machine, path = told.machine, told.folder / MACHINE
    word = word_of(told) or list(machine.symbols[:4])
    said = machine.speak(word)
    if len(word) <= SPELLED or any(len(symbol.split()) != 1 for symbol in word):
        spoken = f"print(machine.speak({word!r}))\n# {said!r}"
    else:
        spoken = f"word = {' '.join(word)!r}\nprint(machine.speak(word.split())[-1])\n# {said[-1]}"
    python = (
        f"import detent.runtime\n\nmachine = detent.runtime.load({str(path)!r})\n{spoken}\n\n"
        "stream = machine.stream()    # piece by piece, for as long as it takes\n"
        'machine.export("machine.c")  # or .js, .onnx: a program without dependencies'
    )
    line = shlex.join(["echo", " ".join(word)])
    shell = [f"{line} | detent run {shlex.quote(str(path))}"]
    if told.certificate is not None:
        shell.append(f"detent check {shlex.quote(str(told.folder / CERTIFICATE))}")
    return joined([element("pre", python), element("pre", "\n".join(shell))])


def word_of(told: Told) -> list[str] | None:
    """A short word as the task draws them, through many states; None where nobody knows the task any more."""
    if told.machine is None or told.task is None:
        return None
    if set(told.task.machine.symbols) <= set(told.machine.symbols):
        for length in range(SHORTEST_STORY if told.task.question else SHORTEST_WORD, LONGEST_WORD):
            with contextlib.suppress(InvalidConfig):  # no word of this law has this length
                drawn = told.task.sample(DRAWN, length, np.random.default_rng(0))
                most = max(range(DRAWN), key=lambda k: len(np.unique(drawn.states[k])))
                return [told.task.machine.symbols[a] for a in drawn.inputs[most].tolist()]
    return None
