"""Layers of other people, behind the interface of the NFSM: what it is compared with."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.baselines.aussm import AUSSM as AUSSM
    from exactstate.baselines.cells import CELLS as CELLS
    from exactstate.baselines.cells import Cell as Cell
    from exactstate.baselines.mamba import MambaMinus as MambaMinus
    from exactstate.baselines.matrix_states import M2RNN as M2RNN
    from exactstate.baselines.matrix_states import DeltaProduct as DeltaProduct
    from exactstate.baselines.memory_units import BMRU as BMRU
    from exactstate.baselines.memory_units import CMRU as CMRU
    from exactstate.baselines.pdssm import PDSSM as PDSSM
    from exactstate.baselines.recurrent import Recurrent as Recurrent
    from exactstate.baselines.rnn import GRU as GRU
    from exactstate.baselines.rnn import LSTM as LSTM

__all__ = lazy(__name__, {
    "aussm": ["AUSSM"],
    "cells": ["CELLS", "Cell"],
    "mamba": ["MambaMinus"],
    "matrix_states": ["DeltaProduct", "M2RNN"],
    "memory_units": ["BMRU", "CMRU"],
    "pdssm": ["PDSSM"],
    "recurrent": ["Recurrent"],
    "rnn": ["GRU", "LSTM"],
})  # fmt: skip
