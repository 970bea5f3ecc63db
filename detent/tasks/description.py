"""What a task says about itself: its size, its words, whether the last symbols tell the state, the heads it needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from detent.automata import Definite, definite
from detent.automata.factoring import factor
from detent.tasks.definiteness import definite_words
from detent.tasks.sampling import Task


@dataclass(frozen=True, kw_only=True)
class Description:
    """The facts of a task, each with its reason."""

    name: str
    about: str
    words: str
    """How words are drawn."""
    states: int
    symbols: int
    definite: Definite
    """Whether the last symbols tell the state, on the words that are drawn."""
    machine_definite: bool
    """Whether they do on all words."""
    layers: tuple[tuple[int, ...], ...]
    """Suggested indices of every head of every layer."""
    factoring: str
    """Why these heads."""

    @property
    def heads(self) -> tuple[int, ...]:
        """Suggested indices of every head, of all layers."""
        return tuple(d for layer in self.layers for d in layer)

    @property
    def why(self) -> str:
        """Why the task is definite or not, in a sentence."""
        sentence = self.definite.explain()
        if self.definite and not self.machine_definite:
            return f"{sentence}; so on the words that are drawn, though not on all words"
        return sentence


@lru_cache(maxsize=64)
def describe(task: Task) -> Description:
    """What a task says about itself, computed once; a machine of thousands of states takes seconds."""
    layers, reason = _heads(task)
    return Description(
        name=task.name, about=task.about, words=task.law.describe(task.machine.symbols),
        states=task.machine.n_states, symbols=task.machine.n_symbols,
        definite=definite_words(task), machine_definite=bool(definite(task.machine)), layers=layers, factoring=reason,
    )  # fmt: skip


def _heads(task: Task) -> tuple[tuple[tuple[int, ...], ...], str]:
    """Heads by layer, and why."""
    if task.layers is None:
        found = factor(task.machine)
        return (found.sizes,), found.explain()
    stack = ", then ".join(f"{len(layer)} heads of {', '.join(map(str, sorted(set(layer))))}" for layer in task.layers)
    return task.layers, f"{len(task.layers)} layers, each after a convolution over two symbols: {stack} indices"
