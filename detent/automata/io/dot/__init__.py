"""DOT, the language in which LearnLib, AutomataWiki and AALpy exchange machines."""

from __future__ import annotations

from detent.automata.io.dot.parser import parse_graph
from detent.automata.io.dot.reader import foreign_machine
from detent.automata.io.dot.writer import own_machine
from detent.automata.io.dot.writer import to_dot as to_dot
from detent.automata.io.reader import Reading
from detent.automata.machine import Semiautomaton


def read(reading: Reading) -> Semiautomaton:
    """The machine that the text describes."""
    graph = parse_graph(reading)
    return own_machine(reading, graph) if "detent_machine" in graph.attributes else foreign_machine(reading, graph)


def looks_like(text: str) -> bool:
    """Whether text of an unknown kind is likely to be DOT."""
    words = text[:1000].lstrip().lower()
    return words.startswith(("digraph", "strict", "//", "/*", "#"))
