"""Properties of machines, each with a witness: definite, aperiodic, group, synchronizing, the transition monoid."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.automata.properties.definite import Definite as Definite
    from detent.automata.properties.definite import definite as definite
    from detent.automata.properties.monoid import Aperiodic as Aperiodic
    from detent.automata.properties.monoid import Group as Group
    from detent.automata.properties.monoid import Subgroup as Subgroup
    from detent.automata.properties.monoid import TransitionMonoid as TransitionMonoid
    from detent.automata.properties.monoid import aperiodic as aperiodic
    from detent.automata.properties.monoid import group as group
    from detent.automata.properties.monoid import transition_monoid as transition_monoid
    from detent.automata.properties.properties import Properties as Properties
    from detent.automata.properties.synchronizing import Synchronizing as Synchronizing
    from detent.automata.properties.synchronizing import synchronizing as synchronizing

__all__ = lazy(__name__)
