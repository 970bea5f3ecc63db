"""Layers: what has parameters."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.nn.aussm import AUSSM as AUSSM
    from exactstate.nn.backbone import Backbone as Backbone
    from exactstate.nn.backbone import State as State
    from exactstate.nn.bmru import BMRU as BMRU
    from exactstate.nn.bmru import CMRU as CMRU
    from exactstate.nn.conv import CausalConvolution as CausalConvolution
    from exactstate.nn.diagnose import Diagnosis as Diagnosis
    from exactstate.nn.diagnose import HeadDiagnosis as HeadDiagnosis
    from exactstate.nn.losses import exploration_penalty as exploration_penalty
    from exactstate.nn.losses import record_calls as record_calls
    from exactstate.nn.losses import tracking_loss as tracking_loss
    from exactstate.nn.mamba import MambaMinus as MambaMinus
    from exactstate.nn.mlp import GatedMLP as GatedMLP
    from exactstate.nn.nfsm import NFSM as NFSM
    from exactstate.nn.pdssm import PDSSM as PDSSM
    from exactstate.nn.pruning import prune as prune
    from exactstate.nn.pruning import prune_indices as prune_indices
    from exactstate.nn.pruning import remove_heads as remove_heads
    from exactstate.nn.registers import Registers as Registers
    from exactstate.nn.registers import register_states as register_states
    from exactstate.nn.renewal import agreement as agreement
    from exactstate.nn.renewal import renew as renew
    from exactstate.nn.rnn import GRU as GRU
    from exactstate.nn.rnn import LSTM as LSTM
    from exactstate.nn.soft import register_values as register_values
    from exactstate.nn.soft import soft_states as soft_states
    from exactstate.nn.soft import soften as soften

__all__ = lazy(__name__)
