"""Diagrams of machines: `draw(machine, "machine.svg")`, with matplotlib and without Graphviz.

For the text that Graphviz reads, see `exactstate.automata.to_dot`.
"""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.automata.draw.draw import draw as draw
    from exactstate.automata.draw.draw import svg as svg

__all__ = lazy(__name__)
