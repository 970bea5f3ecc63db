"""Properties of machines, each with a witness: definite, aperiodic, group, synchronizing, the transition monoid."""

from exactstate.automata.properties.definite import Definite, definite
from exactstate.automata.properties.monoid import (
    Aperiodic,
    Group,
    Subgroup,
    TransitionMonoid,
    aperiodic,
    group,
    transition_monoid,
)
from exactstate.automata.properties.properties import Properties
from exactstate.automata.properties.synchronizing import Synchronizing, synchronizing

__all__ = [
    "Aperiodic", "Definite", "Group", "Properties", "Subgroup", "Synchronizing", "TransitionMonoid", "aperiodic",
    "definite", "group", "synchronizing", "transition_monoid",
]  # fmt: skip
