"""What certification looks at: a machine as plain arrays, with the heads it is made of where it came from a model.

    A  symbols     n  states     F  read-outs     R  windows     d  indices of a head     S  the sum of the ds

Whatever has these fields will do; what `detent.extract` reads out of a model does, and so does any machine,
which says nothing about heads. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from detent._types import Floats, Ints
from detent.automata import Mealy, Moore


class Subject(Protocol):
    """A machine that is to be compared with a target; state 0 is its start."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """Their names."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the labels."""

    @property
    def tables(self) -> Ints:
        """A n: where each symbol leads, -1 where the grammar lets it not follow."""

    @property
    def finals(self) -> Ints:
        """A n: the read-out that is made there, -1 where there is none."""

    @property
    def labels(self) -> Ints:
        """F: what is said at a read-out."""

    @property
    def answers(self) -> Ints | None:
        """F: what is answered there, if anything."""

    @property
    def joint_indices(self) -> int:
        """How many tuples of indices the heads have."""


class Layer(Protocol):
    """One layer of a model, see `detent.extract.LayerRead`."""

    @property
    def heads(self) -> tuple[int, ...]: ...
    @property
    def start(self) -> tuple[int, ...]: ...
    @property
    def inputs(self) -> Ints: ...
    @property
    def windows(self) -> Ints: ...
    @property
    def symbols(self) -> Ints: ...
    @property
    def tables(self) -> Ints: ...
    @property
    def margins(self) -> Floats: ...
    @property
    def used(self) -> NDArray[np.bool_]: ...
    def columns(self, head: int) -> slice: ...


class Extraction(Subject, Protocol):
    """A machine that was read out of a model, with all that a certificate tells about it."""

    @property
    def reach(self) -> int: ...
    @property
    def layers(self) -> Sequence[Layer]: ...
    @property
    def configurations(self) -> Ints: ...
    @property
    def places(self) -> Ints: ...
    @property
    def label_margins(self) -> Floats: ...
    @property
    def answer_margins(self) -> Floats | None: ...
    @property
    def grammar(self) -> Moore | None: ...
    @property
    def weights(self) -> str: ...
    @property
    def format(self) -> str: ...


class Errors(Protocol):
    """How far what a format computes may be from what margins are of, see `detent.extract.RoundingErrors`."""

    @property
    def columns(self) -> Sequence[Floats]: ...
    @property
    def labels(self) -> Floats: ...
    @property
    def answers(self) -> Floats | None: ...
    @property
    def assumes(self) -> Sequence[str]: ...


@dataclass(frozen=True, eq=False)
class Plain:
    """A machine that was not read out of a model, as a subject."""

    symbols: tuple[str, ...]
    outputs: tuple[str, ...]
    tables: Ints
    finals: Ints
    labels: Ints
    answers: Ints | None
    joint_indices: int

    @classmethod
    def of(cls, given: Moore | Mealy) -> Plain:
        machine = given.to_mealy()
        n, start = machine.n_states, machine.start
        order = np.array([start, *(q for q in range(n) if q != start)])
        number = np.argsort(order)
        return cls(
            symbols=machine.symbols, outputs=machine.outputs, tables=number[machine.tables[:, order]],
            finals=np.arange(machine.tables.size).reshape(machine.tables.shape),
            labels=machine.readout[:, order].ravel(), answers=None, joint_indices=n,
        )  # fmt: skip
