"""What was read out of a model as a machine that runs without it: saved, streamed, exported, at memory speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.runtime import Heads, Machine

if TYPE_CHECKING:
    from detent.extraction.extracted import Extracted


def standalone(found: Extracted, about: dict[str, Any] | None = None) -> Machine:
    """The smallest machine that says the same, its states named by the labels where these tell what follows.

    One layer without a convolution brings its heads along, to be run instead where that is cheaper.
    """
    automaton = found.minimised if found.grammar is not None or found.named is None else found.named
    heads = None
    if len(found.layers) == 1 and found.reach == 1 and found.grammar is None:
        heads = Heads(found.head_tables, found.start)
    return Machine.of(automaton, heads=heads, about={"weights": found.weights, **(about or {})})
