"""The NFSM layer, the backbone around it, and what trains, prunes and diagnoses them."""

from exactstate.nn.backbone import Backbone, State
from exactstate.nn.conv import CausalConvolution
from exactstate.nn.diagnose import Diagnosis, HeadDiagnosis
from exactstate.nn.heads import HeadReadouts, KeptHead
from exactstate.nn.losses import exploration_penalty, record_calls, tracking_loss
from exactstate.nn.mlp import GatedMLP
from exactstate.nn.nfsm import NFSM
from exactstate.nn.pruning import prune, prune_indices, remove_heads
from exactstate.nn.renewal import agreement, renew
from exactstate.nn.soft import soft_states, soften

__all__ = [
    "NFSM",
    "Backbone",
    "CausalConvolution",
    "Diagnosis",
    "GatedMLP",
    "HeadDiagnosis",
    "HeadReadouts",
    "KeptHead",
    "State",
    "agreement",
    "exploration_penalty",
    "prune",
    "prune_indices",
    "record_calls",
    "remove_heads",
    "renew",
    "soft_states",
    "soften",
    "tracking_loss",
]  # fmt: skip
