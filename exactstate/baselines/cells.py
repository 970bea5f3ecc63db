"""The cells that can be trained by name: the one place to add a baseline. Nothing here imports torch.

`exactstate train TASK --cell NAME`, tables and figures all read `CELLS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A recurrent layer: what it is called, how it is built, how it is drawn."""

    title: str
    """In tables and figures."""
    about: str
    """In a sentence."""
    layer: str
    """The class, as `exactstate.baselines` exports it."""
    sizes: tuple[str, ...] = ("width", "channels")
    """The fields of a `TrainConfig` that are its first arguments."""
    color: str
    marker: str
    line: Any
    """As matplotlib has them. Cells differ in lightness as well as in hue, and in line and marker besides."""


NFSM = Cell(
    title="NFSM", about="the neural finite-state machine", layer="NFSM", sizes=(), color="#C2410C", marker="o",
    line="-",
)  # fmt: skip
CELLS = {
    "nfsm": NFSM,
    "mamba": Cell(
        title="Mamba⁻", about="eigenvalues in (-1, 1)", layer="MambaMinus", sizes=("width", "channels", "states"),
        color="#1F2A6B", marker="s", line=(0, (5, 1.5)),
    ),
    "aussm": Cell(
        title="AUSSM", about="eigenvalues of modulus one", layer="AUSSM", sizes=("width", "channels", "states"),
        color="#2A9D8F", marker="^", line=(0, (1.4, 1.2)),
    ),
    "pdssm": Cell(
        title="PD-SSM", about="one-hot columns times a diagonal with moduli below one", layer="PDSSM",
        sizes=("width", "channels", "states"), color="#E0AA2E", marker="D", line=(0, (5, 1.4, 1.2, 1.4)),
    ),
    "bmru": Cell(
        title="BMRU", about="bistable memory recurrent units", layer="BMRU", color="#7B4B94", marker="v",
        line=(0, (3, 1, 1, 1, 1, 1)),
    ),
    "cmru": Cell(
        title="CMRU", about="counting memory recurrent units", layer="CMRU", color="#A7A7A7", marker="P",
        line=(0, (8, 2)),
    ),
    "gru": Cell(
        title="GRU", about="gated recurrent units, as in PyTorch", layer="GRU", color="#5B8E3E", marker="X",
        line=(0, (4, 1, 1, 1)),
    ),
    "lstm": Cell(
        title="LSTM", about="long short-term memory, as in PyTorch", layer="LSTM", color="#3A3A3A", marker="*",
        line=(0, (2, 1)),
    ),
    "deltaproduct": Cell(
        title="DeltaProduct", about="products of Householder matrices, eigenvalues in [-1, 1]", layer="DeltaProduct",
        sizes=("width", "channels", "states"), color="#B5446E", marker="<", line=(0, (6, 1, 1, 1)),
    ),
    "m2rnn": Cell(
        title="M2RNN", about="matrix states behind a tanh", layer="M2RNN", sizes=("width", "channels", "states"),
        color="#5C6F9E", marker=">", line=(0, (1, 2)),
    ),
}  # fmt: skip
"""By name, in the order of tables and legends."""
BASELINES = tuple(name for name in CELLS if name != "nfsm")
