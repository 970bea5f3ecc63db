"""Machines as mathematics: what is true of them without a network. NumPy, no torch."""

from detent.automata.machine import Mealy as Mealy
from detent.automata.machine import Moore as Moore
from detent.automata.machine import Semiautomaton as Semiautomaton
from detent.automata.running import compose as compose
