"""Symbols that are regions of inputs: certified radii, counterexamples, exact cells, and watching real inputs."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.extract.regions.attack import Counterexample as Counterexample
    from exactstate.extract.regions.attack import attack as attack
    from exactstate.extract.regions.attack import broken_radii as broken_radii
    from exactstate.extract.regions.attack import random_changes as random_changes
    from exactstate.extract.regions.cells import Cells as Cells
    from exactstate.extract.regions.prove import RegionProof as RegionProof
    from exactstate.extract.regions.prove import largest_radii as largest_radii
    from exactstate.extract.regions.prove import prototypes as prototypes
    from exactstate.extract.regions.prove import prove as prove
    from exactstate.extract.regions.watch import Watched as Watched

__all__ = lazy(__name__)
