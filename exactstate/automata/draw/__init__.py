"""Diagrams of machines: `draw(machine, "machine.svg")`, with matplotlib and without Graphviz.

For the text that Graphviz reads, see `exactstate.automata.to_dot`.
"""

from exactstate.automata.draw.draw import draw, svg

__all__ = ["draw", "svg"]
