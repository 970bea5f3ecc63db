"""The paper's claims, executable: what a recurrence needs to track states at every length, and what it then can track.

`drift` and `gap` return rows for figures. They and `branch` of a layer need torch; the rest does not.
"""

from paper.theory.branches import branch as branch
from paper.theory.capacity import invariant_sets as invariant_sets
from paper.theory.constructions import eta_0 as eta_0
from paper.theory.constructions import from_factoring as from_factoring
from paper.theory.constructions import one_hot as one_hot
from paper.theory.constructions import shift_register as shift_register
from paper.theory.constructions import stacked as stacked
from paper.theory.ellipsoids import invariant_ellipsoid as invariant_ellipsoid
from paper.theory.horizons import contracting_horizon as contracting_horizon
from paper.theory.horizons import isometric_horizon as isometric_horizon
from paper.theory.horizons import refute as refute
from paper.theory.horizons import shortest_collision as shortest_collision
from paper.theory.perturbation import perturbed as perturbed
from paper.theory.perturbation import shortest_attack as shortest_attack
from paper.theory.realization import realizes as realizes
from paper.theory.realization import two_rates as two_rates
from paper.theory.triples import Affine as Affine
from paper.theory.triples import Triple as Triple
