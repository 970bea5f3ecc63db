"""The paper's claims, executable: what a recurrence must do to keep track of states, and what it then can.

`drift` and `gap` return rows for figures; they and `branch` of a layer need torch, the rest does not load it.
"""

from detent.theory.attractors import eta_0 as eta_0
from detent.theory.attractors import from_factoring as from_factoring
from detent.theory.attractors import one_hot as one_hot
from detent.theory.attractors import stacked as stacked
from detent.theory.branches import branch as branch
from detent.theory.capacity import held_sets as held_sets
from detent.theory.ellipsoids import held_ellipsoid as held_ellipsoid
from detent.theory.horizons import contracting_horizon as contracting_horizon
from detent.theory.horizons import first_meeting as first_meeting
from detent.theory.horizons import isometric_horizon as isometric_horizon
from detent.theory.limits import refute as refute
from detent.theory.rates import two_rates as two_rates
from detent.theory.realization import realizes as realizes
from detent.theory.register import shift_register as shift_register
from detent.theory.trajectories import perturbed as perturbed
from detent.theory.trajectories import shortest_attack as shortest_attack
from detent.theory.triples import Affine as Affine
from detent.theory.triples import Triple as Triple
