"""Machines as mathematics: what is true of them without a network. NumPy, no torch."""

from detent.automata.equivalence import separating_word as separating_word
from detent.automata.groups import alternating as alternating
from detent.automata.groups import cyclic as cyclic
from detent.automata.groups import dihedral as dihedral
from detent.automata.groups import from_permutations as from_permutations
from detent.automata.groups import mathieu11 as mathieu11
from detent.automata.groups import permutation as permutation
from detent.automata.groups import quaternion as quaternion
from detent.automata.groups import symmetric as symmetric
from detent.automata.languages import from_tables as from_tables
from detent.automata.languages import modular_arithmetic as modular_arithmetic
from detent.automata.languages import tomita as tomita
from detent.automata.machine import Mealy as Mealy
from detent.automata.machine import Moore as Moore
from detent.automata.machine import Semiautomaton as Semiautomaton
from detent.automata.matching import isomorphism as isomorphism
from detent.automata.minimise import canonical as canonical
from detent.automata.minimise import minimize as minimize
from detent.automata.monoids import flip_flop as flip_flop
from detent.automata.monoids import from_maps as from_maps
from detent.automata.monoids import permutation_reset as permutation_reset
from detent.automata.products import cascade as cascade
from detent.automata.products import direct_product as direct_product
from detent.automata.products import parallel as parallel
from detent.automata.running import compose as compose
