"""How the state of a machine is shared among heads: the family of congruences that does it at the smallest cost."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.automata.factor.factor import Factoring as Factoring
    from detent.automata.factor.factor import check_factoring as check_factoring
    from detent.automata.factor.factor import factor as factor

__all__ = lazy(__name__)
