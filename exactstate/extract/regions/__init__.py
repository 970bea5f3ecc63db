"""Symbols that are regions of inputs: certified radii, counterexamples, exact cells, and watching real inputs."""

from exactstate.extract.regions.attack import Counterexample, attack, broken_radii, random_changes
from exactstate.extract.regions.cells import Cells
from exactstate.extract.regions.prove import RegionProof, largest_radii, prototypes, prove
from exactstate.extract.regions.watch import Watched

__all__ = [
    "Cells", "Counterexample", "RegionProof", "Watched", "attack", "broken_radii", "largest_radii", "prototypes",
    "prove", "random_changes",
]  # fmt: skip
