"""Text models as certified machines: whether the answer to every question in every text of a language is right.

A model is trained as in `text.py`; what it predicts after a question is kept, and what it predicts elsewhere is called
`free`. The machine of this is extracted from the weights, and compared with the automaton of the language over all of
its texts.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exactstate import certify, extract, native
from exactstate.automata import Moore
from exactstate.extract.result import REFUSED
from exactstate.records import Row
from exactstate.text import TextModel, fit
from paper.experiments.text import LENGTH, TEXTS
from paper.experiments.text_languages import LANGUAGES

FREE = "free"
State = tuple[Any, ...]


class Answers(nn.Module):
    """Logits of the words, and of `free`, which is sure where the last token is no question."""

    def __init__(self, model: nn.Module, is_question: list[bool]) -> None:
        super().__init__()
        self.model = model
        free = torch.tensor([[-1e4 if one else 1e4] for one in is_question])
        self.free = nn.Embedding.from_pretrained(free)

    def forward(self, tokens: Tensor) -> Tensor:
        return torch.cat([self.model(tokens), self.free(tokens)], -1)


def dials() -> tuple[State, Callable[[State, str], State | None], Callable[[State], str | None]]:
    """The automaton of the language `dials`: (the start, the state after a token, what is to be answered)."""

    def after(state: State, word: str) -> State | None:
        a, b, asked = state
        if asked or word.isdigit():
            return (a, b, "") if asked and word == answer(state) else None
        if word.endswith("?"):
            return a, b, word[0]
        turn = int(word[2])
        return ((a + turn) % 10, b, "") if word[0] == "a" else (a, (b + turn) % 10, "")

    def answer(state: State) -> str | None:
        a, b, asked = state
        return {"a": str(a), "b": str(b)}.get(asked)

    return (0, 0, ""), after, answer


def flip_flop() -> tuple[State, Callable[[State, str], State | None], Callable[[State], str | None]]:
    """That of `flip_flop`: a bit and the command that was begun."""

    def after(state: State, word: str) -> State | None:
        bit, begun = state
        if not begun:
            return (bit, word) if not word.isdigit() and (bit or word == "write") else None
        if not word.isdigit() or (begun == "read" and word != bit):
            return None
        return (word if begun == "write" else bit), ""

    def answer(state: State) -> str | None:
        bit, begun = state
        return bit if begun == "read" else None

    return ("", ""), after, answer


AUTOMATA = {"dials": dials, "flip_flop": flip_flop}
"""Of languages whose questions are a single token."""


def target(language: str) -> Moore:
    """The automaton of a language over its words: what is to be answered, `free`, or 'refused' after no text of it."""
    words = LANGUAGES[language].words
    start, after, answer = AUTOMATA[language]()
    states: list[State | None] = [start, None]
    for state in states:
        if state is not None:
            for word in words:
                to = after(state, word)
                if to not in states:
                    states.append(to)
    place = {state: n for n, state in enumerate(states)}
    tables = np.ones((len(words), len(states)), np.int64)
    for (c, word), state in product(enumerate(words), states):
        tables[c, place[state]] = 1 if state is None else place[after(state, word)]
    outputs = (*words, FREE, REFUSED)
    readout = [outputs.index(REFUSED if state is None else answer(state) or FREE) for state in states]
    return Moore(symbols=words, tables=tables, states=tuple(map(str, states)), outputs=outputs,
                 readout=np.array(readout))  # fmt: skip


def certificate_row(language: str, seed: int, seconds: float) -> Row:
    """Train, extract and compare."""
    threads = native.set_threads(1)
    try:
        words = LANGUAGES[language].words
        torch.manual_seed(seed)
        model = TextModel(len(words))
        fit(model, torch.from_numpy(LANGUAGES[language].sample(TEXTS, LENGTH, seed).tokens), seconds, seed)
        wanted = target(language)
        questions = {words[c] for c in range(len(words)) for n in range(len(wanted.states))
                     if wanted.outputs[wanted.readout[wanted.tables[c, n]]] in words}  # fmt: skip
        answers = Answers(model, [word in questions for word in words]).eval()
        machine = extract(answers, symbols=words, labels=(*words, FREE), grammar=wanted)
        verdict = certify(machine, wanted, labels="outputs")
        return {
            "language": language, "seed": seed, "budget_seconds": seconds, "certified": bool(verdict),
            "states": machine.minimized.n_states, "heads": [list(layer) for layer in machine.heads],
            "verdict": verdict.explain(),
        }  # fmt: skip
    finally:
        native.set_threads(threads)
