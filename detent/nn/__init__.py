"""Layers: what has parameters."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.nn.aussm import AUSSM as AUSSM
    from detent.nn.backbone import Backbone as Backbone
    from detent.nn.backbone import State as State
    from detent.nn.bmru import BMRU as BMRU
    from detent.nn.bmru import CMRU as CMRU
    from detent.nn.conv import CausalConvolution as CausalConvolution
    from detent.nn.diagnose import Diagnosis as Diagnosis
    from detent.nn.diagnose import HeadDiagnosis as HeadDiagnosis
    from detent.nn.losses import exploration_penalty as exploration_penalty
    from detent.nn.losses import record_calls as record_calls
    from detent.nn.losses import tracking_loss as tracking_loss
    from detent.nn.mamba import MambaMinus as MambaMinus
    from detent.nn.mlp import GatedMLP as GatedMLP
    from detent.nn.nfsm import NFSM as NFSM
    from detent.nn.pdssm import PDSSM as PDSSM
    from detent.nn.pruning import prune as prune
    from detent.nn.pruning import prune_indices as prune_indices
    from detent.nn.pruning import remove_heads as remove_heads
    from detent.nn.registers import Registers as Registers
    from detent.nn.registers import register_states as register_states
    from detent.nn.renewal import agreement as agreement
    from detent.nn.renewal import renew as renew
    from detent.nn.rnn import GRU as GRU
    from detent.nn.rnn import LSTM as LSTM
    from detent.nn.soft import register_values as register_values
    from detent.nn.soft import soft_states as soft_states
    from detent.nn.soft import soften as soften

__all__ = lazy(__name__)
