"""Properties of machines, each with a witness: definite, aperiodic, group, synchronizing, the transition monoid."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.automata.properties.definite import Definite as Definite
    from exactstate.automata.properties.definite import definite as definite
    from exactstate.automata.properties.monoid import Aperiodic as Aperiodic
    from exactstate.automata.properties.monoid import Group as Group
    from exactstate.automata.properties.monoid import Subgroup as Subgroup
    from exactstate.automata.properties.monoid import TransitionMonoid as TransitionMonoid
    from exactstate.automata.properties.monoid import aperiodic as aperiodic
    from exactstate.automata.properties.monoid import group as group
    from exactstate.automata.properties.monoid import transition_monoid as transition_monoid
    from exactstate.automata.properties.properties import Properties as Properties
    from exactstate.automata.properties.synchronizing import Synchronizing as Synchronizing
    from exactstate.automata.properties.synchronizing import synchronizing as synchronizing

__all__ = lazy(__name__)
