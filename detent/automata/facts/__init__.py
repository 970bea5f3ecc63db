"""What is true of a machine, each answer with its witness."""

from detent.automata.facts.definite_order import Definite as Definite
from detent.automata.facts.definite_order import definite as definite
from detent.automata.facts.periods import Aperiodic as Aperiodic
from detent.automata.facts.periods import Group as Group
from detent.automata.facts.periods import Subgroup as Subgroup
from detent.automata.facts.periods import aperiodic as aperiodic
from detent.automata.facts.periods import group as group
from detent.automata.facts.resets import Synchronising as Synchronising
from detent.automata.facts.resets import synchronising as synchronising
from detent.automata.facts.summary import Facts as Facts
from detent.automata.facts.transitions import TransitionMonoid as TransitionMonoid
from detent.automata.facts.transitions import transition_monoid as transition_monoid
