"""Machines as mathematics: what is true of them without a network. NumPy, no torch."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.automata.congruence import congruence as congruence
    from detent.automata.congruence import is_congruence as is_congruence
    from detent.automata.congruence import join as join
    from detent.automata.congruence import meet as meet
    from detent.automata.congruence import principal_congruences as principal_congruences
    from detent.automata.congruence import quotient as quotient
    from detent.automata.draw.draw import draw as draw
    from detent.automata.equivalence import distinguishing_word as distinguishing_word
    from detent.automata.factor.factor import Factoring as Factoring
    from detent.automata.factor.factor import factor as factor
    from detent.automata.groups import alternating as alternating
    from detent.automata.groups import cyclic as cyclic
    from detent.automata.groups import dihedral as dihedral
    from detent.automata.groups import flip_flop as flip_flop
    from detent.automata.groups import from_maps as from_maps
    from detent.automata.groups import from_permutations as from_permutations
    from detent.automata.groups import mathieu11 as mathieu11
    from detent.automata.groups import mathieu12 as mathieu12
    from detent.automata.groups import permutation as permutation
    from detent.automata.groups import permutation_reset as permutation_reset
    from detent.automata.groups import quaternion as quaternion
    from detent.automata.groups import symmetric as symmetric
    from detent.automata.io.dot_writer import to_dot as to_dot
    from detent.automata.io.formats import read_machine as read_machine
    from detent.automata.io.formats import write_machine as write_machine
    from detent.automata.isomorphism import isomorphism as isomorphism
    from detent.automata.languages import from_tables as from_tables
    from detent.automata.languages import modular_arithmetic as modular_arithmetic
    from detent.automata.languages import tomita as tomita
    from detent.automata.machine import Mealy as Mealy
    from detent.automata.machine import Moore as Moore
    from detent.automata.machine import Semiautomaton as Semiautomaton
    from detent.automata.machine import format_word as format_word
    from detent.automata.minimize import canonical as canonical
    from detent.automata.minimize import minimize as minimize
    from detent.automata.products import cascade as cascade
    from detent.automata.products import direct_product as direct_product
    from detent.automata.products import parallel as parallel
    from detent.automata.properties.definite import Definite as Definite
    from detent.automata.properties.definite import definite as definite
    from detent.automata.properties.monoid import aperiodic as aperiodic
    from detent.automata.properties.monoid import group as group
    from detent.automata.properties.monoid import transition_monoid as transition_monoid
    from detent.automata.properties.properties import Properties as Properties
    from detent.automata.properties.synchronizing import synchronizing as synchronizing
    from detent.automata.run import compose as compose

__all__ = lazy(__name__)
