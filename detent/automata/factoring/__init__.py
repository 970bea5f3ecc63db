"""How the state of a machine is shared among heads: the family of congruences that does it at the smallest cost."""

from detent.automata.factoring.heads import Factoring as Factoring
from detent.automata.factoring.heads import check_factoring as check_factoring
from detent.automata.factoring.heads import factor as factor
