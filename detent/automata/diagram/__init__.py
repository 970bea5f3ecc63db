"""Diagrams of machines: `draw(machine, "machine.svg")`, with matplotlib and without Graphviz.

For the text that Graphviz reads, see `detent.automata.to_dot`.
"""

from detent.automata.diagram.picture import draw as draw
from detent.automata.diagram.picture import svg as svg
