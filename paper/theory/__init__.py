"""The paper's claims, executable: what a recurrence must do to keep track of states, and what it then can.

`drift` and `gap` return rows for figures; they and `branch` of a layer need torch, the rest does not load it.
"""

from paper.theory.attractors import eta_0 as eta_0
from paper.theory.attractors import from_factoring as from_factoring
from paper.theory.attractors import one_hot as one_hot
from paper.theory.attractors import stacked as stacked
from paper.theory.branches import branch as branch
from paper.theory.capacity import held_sets as held_sets
from paper.theory.ellipsoids import held_ellipsoid as held_ellipsoid
from paper.theory.horizons import contracting_horizon as contracting_horizon
from paper.theory.horizons import first_meeting as first_meeting
from paper.theory.horizons import isometric_horizon as isometric_horizon
from paper.theory.limits import refute as refute
from paper.theory.rates import two_rates as two_rates
from paper.theory.realization import realizes as realizes
from paper.theory.register import shift_register as shift_register
from paper.theory.trajectories import perturbed as perturbed
from paper.theory.trajectories import shortest_attack as shortest_attack
from paper.theory.triples import Affine as Affine
from paper.theory.triples import Triple as Triple
