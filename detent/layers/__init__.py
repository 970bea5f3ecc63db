"""Recurrent layers: what has parameters."""

from detent.layers.nfsm import NFSM as NFSM
