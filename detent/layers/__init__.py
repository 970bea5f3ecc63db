"""Layers: what has parameters."""

from detent.layers.convolution import CausalConvolution as CausalConvolution
from detent.layers.mlp import GatedMLP as GatedMLP
from detent.layers.nfsm import NFSM as NFSM
