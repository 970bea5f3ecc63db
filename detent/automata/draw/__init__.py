"""Diagrams of machines: `draw(machine, "machine.svg")`, with matplotlib and without Graphviz.

For the text that Graphviz reads, see `detent.automata.to_dot`.
"""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.automata.draw.draw import draw as draw
    from detent.automata.draw.draw import svg as svg

__all__ = lazy(__name__)
