"""Symbols that are regions of inputs: certified radii, counterexamples, exact cells, and watching real inputs."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.extract.regions.attack import Counterexample as Counterexample
    from detent.extract.regions.attack import attack as attack
    from detent.extract.regions.attack import broken_radii as broken_radii
    from detent.extract.regions.attack import random_changes as random_changes
    from detent.extract.regions.cells import Cells as Cells
    from detent.extract.regions.prove import RegionProof as RegionProof
    from detent.extract.regions.prove import largest_radii as largest_radii
    from detent.extract.regions.prove import prototypes as prototypes
    from detent.extract.regions.prove import prove as prove
    from detent.extract.regions.watch import Watched as Watched

__all__ = lazy(__name__)
