"""Machines as mathematics: what is true of them without a network. NumPy, no torch."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.automata.congruence import congruence as congruence
    from exactstate.automata.congruence import is_congruence as is_congruence
    from exactstate.automata.congruence import join as join
    from exactstate.automata.congruence import meet as meet
    from exactstate.automata.congruence import quotient as quotient
    from exactstate.automata.draw.draw import draw as draw
    from exactstate.automata.equivalence import distinguishing_word as distinguishing_word
    from exactstate.automata.factor.factor import Factoring as Factoring
    from exactstate.automata.factor.factor import factor as factor
    from exactstate.automata.groups import alternating as alternating
    from exactstate.automata.groups import cyclic as cyclic
    from exactstate.automata.groups import dihedral as dihedral
    from exactstate.automata.groups import flip_flop as flip_flop
    from exactstate.automata.groups import from_maps as from_maps
    from exactstate.automata.groups import from_permutations as from_permutations
    from exactstate.automata.groups import mathieu11 as mathieu11
    from exactstate.automata.groups import mathieu12 as mathieu12
    from exactstate.automata.groups import permutation as permutation
    from exactstate.automata.groups import symmetric as symmetric
    from exactstate.automata.io.dot_writer import to_dot as to_dot
    from exactstate.automata.io.formats import read_machine as read_machine
    from exactstate.automata.io.formats import write_machine as write_machine
    from exactstate.automata.isomorphism import isomorphism as isomorphism
    from exactstate.automata.languages import from_tables as from_tables
    from exactstate.automata.languages import tomita as tomita
    from exactstate.automata.machine import Mealy as Mealy
    from exactstate.automata.machine import Moore as Moore
    from exactstate.automata.machine import Semiautomaton as Semiautomaton
    from exactstate.automata.machine import format_word as format_word
    from exactstate.automata.minimize import canonical as canonical
    from exactstate.automata.minimize import minimize as minimize
    from exactstate.automata.policy import Policy as Policy
    from exactstate.automata.policy import read_policies as read_policies
    from exactstate.automata.products import cascade as cascade
    from exactstate.automata.products import direct_product as direct_product
    from exactstate.automata.products import parallel as parallel
    from exactstate.automata.properties.definite import Definite as Definite
    from exactstate.automata.properties.definite import definite as definite
    from exactstate.automata.properties.monoid import aperiodic as aperiodic
    from exactstate.automata.properties.monoid import group as group
    from exactstate.automata.properties.monoid import transition_monoid as transition_monoid
    from exactstate.automata.properties.properties import Properties as Properties
    from exactstate.automata.properties.synchronizing import synchronizing as synchronizing
    from exactstate.automata.run import compose as compose

__all__ = lazy(__name__, {
    "congruence": ["congruence", "is_congruence", "join", "meet", "quotient"],
    "draw.draw": ["draw"],
    "equivalence": ["distinguishing_word"],
    "factor.factor": ["Factoring", "factor"],
    "groups": [
        "alternating", "cyclic", "dihedral", "flip_flop", "from_maps", "from_permutations", "mathieu11",
        "mathieu12", "permutation", "symmetric",
    ],
    "io.dot_writer": ["to_dot"],
    "io.formats": ["read_machine", "write_machine"],
    "isomorphism": ["isomorphism"],
    "languages": ["from_tables", "tomita"],
    "machine": ["Mealy", "Moore", "Semiautomaton", "format_word"],
    "minimize": ["canonical", "minimize"],
    "policy": ["Policy", "read_policies"],
    "products": ["cascade", "direct_product", "parallel"],
    "properties.definite": ["Definite", "definite"],
    "properties.monoid": ["aperiodic", "group", "transition_monoid"],
    "properties.properties": ["Properties"],
    "properties.synchronizing": ["synchronizing"],
    "run": ["compose"],
})  # fmt: skip
