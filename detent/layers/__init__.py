"""Layers: what has parameters."""

from detent.layers.aussm import AUSSM as AUSSM
from detent.layers.convolution import CausalConvolution as CausalConvolution
from detent.layers.mamba import MambaMinus as MambaMinus
from detent.layers.memory import BMRU as BMRU
from detent.layers.memory import CMRU as CMRU
from detent.layers.mlp import GatedMLP as GatedMLP
from detent.layers.nfsm import NFSM as NFSM
from detent.layers.pdssm import PDSSM as PDSSM
