"""Whether a triple realizes an automaton at every length: three conditions on one step, decided on cells.

    R1  every code point lies in its cell and is read as its state
    R2  the region is bounded, and invariant under one step and one perturbation of at most eta
    R3  after one step and one perturbation, the read-out is the successor of the state that was read before

If the read-out distinguishes the cells, R2 and R3 say that the image of every cell, perturbed, lies in the cell of the
successor. For boxes under affine maps, and for boxes and balls under tables, that is decided in rational arithmetic:
"proved" or "refuted". Other steps are tried at random points: "refuted", or "sampled" if no counterexample was found. A
refuted condition has a witness: a hidden state, a symbol, a perturbation, and where they lead.

`two_rates` measures what such a realization must do along every word: the image of a cell U_q is at least 2 eta
narrower than the cell it lands in (contraction), and images of different states are at least 2 eta apart (separation).
Distances are in the norm of the triple for tables, and in the largest-entry norm for affine steps, whose images are
enclosed in boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product
from typing import Literal

import numpy as np

from exactstate._types import MISSING
from exactstate.automata.machine import Semiautomaton
from exactstate.errors import InvalidConfig, InvalidInput
from paper.theory.shapes import SLACK, AffineImage, Exact, Floats, Shape, exact, extreme_perturbation, unit_vectors
from paper.theory.triples import Affine, Tables, Triple

Status = Literal["proved", "refuted", "sampled"]
SAMPLES = 2000
Boxes = tuple[Floats, Floats]
"""Centers and half widths, k d each."""


@dataclass(frozen=True)
class Witness:
    """A step that goes wrong: from `u`, a point of `state`, by `symbol` and the perturbation `e`, to `lands`."""

    state: str
    symbol: str | None
    """None when no step is needed: the point itself is misread."""
    u: Floats
    e: Floats
    lands: Floats
    read: str | None
    """The state read where it lands; None if there is none."""

    def explain(self) -> str:
        read = "nothing" if self.read is None else repr(self.read)
        if self.symbol is None:
            return f"the point {_short(self.u)} of {self.state!r} is read as {read}"
        moved = (
            f"{self.symbol!r} and the perturbation {_short(self.e)} send {_short(self.u)}, a point of {self.state!r},"
        )
        return f"{moved} to {_short(self.lands)}, read as {read}"


@dataclass(frozen=True)
class Condition:
    """One of the three conditions."""

    name: str
    status: Status
    witness: Witness | None = None

    def explain(self) -> str:
        return f"{self.name} {self.status}" + (f": {self.witness.explain()}" if self.witness else "")


@dataclass(frozen=True)
class Realization:
    """The three conditions at one level of perturbation. True unless one of them is refuted."""

    eta: Fraction
    conditions: tuple[Condition, ...]

    def __bool__(self) -> bool:
        return all(condition.status != "refuted" for condition in self.conditions)

    @property
    def proved(self) -> bool:
        """Whether every condition was decided and holds, so that the triple tracks the automaton at every length."""
        return all(condition.status == "proved" for condition in self.conditions)

    def __getitem__(self, name: str) -> Condition:
        return next(condition for condition in self.conditions if condition.name == name)

    def explain(self) -> str:
        return "\n".join(condition.explain() for condition in self.conditions)


def _short(numbers: Floats) -> str:
    shown = ", ".join(f"{x:.3g}" for x in numbers[:6])
    return f"({shown}{', ...' if len(numbers) > 6 else ''})"


def realizes(
    triple: Triple, automaton: Semiautomaton, eta: float | Fraction, *, samples: int = SAMPLES, seed: int = 0
) -> Realization:
    """Decide R1, R2 and R3 of the triple on its own cells at this eta.

    Where the conditions cannot be decided, `samples` random steps are tried.

    >>> from exactstate.automata import symmetric
    >>> from paper.theory.constructions import one_hot
    >>> realizes(one_hot(symmetric(3)), symmetric(3), 0.49).proved
    True
    """
    if eta <= 0:
        raise InvalidConfig(f"a perturbation level is positive; got {eta}.")
    if len(triple.codes) != automaton.n_states:
        raise InvalidInput(
            f"a triple has a code point for each of the {automaton.n_states} states; got {len(triple.codes)}."
        )
    check = _Check(triple, automaton, Fraction(eta))
    if isinstance(triple.step, Affine | Tables):
        return Realization(check.eta, (check.codes(), *check.decide(triple.step)))
    return Realization(check.eta, (check.codes(), *check.sample(samples, np.random.default_rng(seed))))


class _Check:
    def __init__(self, triple: Triple, automaton: Semiautomaton, eta: Fraction) -> None:
        self.triple, self.automaton, self.eta = triple, automaton, eta
        self.cells = triple.cells(eta)
        if len(self.cells) != automaton.n_states or not all(self.cells):
            sizes = [len(shapes) for shapes in self.cells]
            raise InvalidInput(
                f"each of the {automaton.n_states} states has a cell of at least one shape; got {sizes}."
            )
        self.shapes = [(q, shape) for q, shapes in enumerate(self.cells) for shape in shapes]
        centers, reaches = zip(*(shape.floats for _, shape in self.shapes), strict=True)
        self.centers, self.reaches = np.array(centers), np.array(reaches) + SLACK
        self.witnesses: dict[str, Witness] = {}
        self.undecided: set[str] = set()
        """Conditions that were only sampled."""

    def codes(self) -> Condition:
        for q, code in enumerate(exact(self.triple.codes)):
            here = self._point(q, code)
            if here.read != here.state or not any(shape.contains(code) for shape in self.cells[q]):
                return Condition("R1", "refuted", here)
        return Condition("R1", "proved")

    def decide(self, step: Affine | Tables) -> tuple[Condition, Condition]:
        for q, shape in self.shapes:
            if self.triple.readout.on(shape) != q:
                self._refute("R3", self._points(q, shape), lambda point: point.read != point.state)
            for x, successor in enumerate(self.automaton.tables[:, q]):
                for image in step.image(x, shape):
                    containing = self._containing(image)
                    if not containing:
                        self._refute(
                            "R2", self._steps(q, x, shape), lambda perturbed: not self._inside(perturbed.lands)
                        )
                    if successor not in containing:
                        self._refute("R3", self._steps(q, x, shape), self._misread)
        return self._condition("R2"), self._condition("R3")

    def sample(self, count: int, generator: np.random.Generator) -> tuple[Condition, Condition]:
        self.undecided = {"R2", "R3"}
        A, d = self.automaton.n_symbols, self.triple.codes.shape[1]
        each = max(1, count // (len(self.shapes) * A))
        eta = float(self.eta) * (1 - SLACK)  # rounding alone must not refute a condition
        for (q, shape), x in product(self.shapes, range(A)):
            perturbations = eta * unit_vectors(generator, each, d, self.triple.norm)
            for u, e in zip(shape.sample(generator, each), perturbations, strict=True):
                tried = self._step(q, x, exact(u), exact(e))
                if not self._inside(tried.lands):
                    self.witnesses.setdefault("R2", tried)
                if self._misread(tried):
                    self.witnesses.setdefault("R3", tried)
        return self._condition("R2"), self._condition("R3")

    def _condition(self, condition: str) -> Condition:
        if condition in self.witnesses:
            return Condition(condition, "refuted", self.witnesses[condition])
        return Condition(condition, "sampled" if condition in self.undecided else "proved")

    def _refute(self, condition: str, tries: Iterator[Witness], wrong: Callable[[Witness], bool]) -> None:
        """Look for a witness among the tries; without one the condition is neither refuted nor proved."""
        if condition not in self.witnesses:
            self.undecided.add(condition)
            self.witnesses.update((condition, tried) for tried in islice(filter(wrong, tries), 1))

    def _near(self, h: Floats) -> list[tuple[int, Shape]]:
        """The shapes that might contain a point."""
        return [self.shapes[i] for i in np.flatnonzero((np.abs(self.centers - h) <= self.reaches).all(1))]

    def _containing(self, image: AffineImage) -> set[int]:
        """The states in whose cell the perturbed image lies."""
        near = self._near(image.center.astype(float))
        return {q for q, shape in near if shape.contains_image(image, self.eta, self.triple.norm)}

    def _inside(self, h: Floats) -> bool:
        return any(shape.contains(exact(h)) for _, shape in self._near(h))

    def _misread(self, step: Witness) -> bool:
        """Whether the read-out is not the successor."""
        assert step.symbol is not None
        successor = self.automaton.run([step.symbol], state=step.state)
        return step.read != self.automaton.states[successor]

    def _directions(self, shape: Shape) -> Iterator[Exact]:
        """Towards every code point, and both ways along every coordinate."""
        yield from (code - shape.center for code in exact(self.triple.codes))
        yield from (side * g for g in exact(np.eye(self.triple.codes.shape[1], dtype=int)) for side in (1, -1))

    def _points(self, q: int, shape: Shape) -> Iterator[Witness]:
        return (self._point(q, shape.extreme_point(g)) for g in self._directions(shape))

    def _steps(self, q: int, x: int, shape: Shape) -> Iterator[Witness]:
        """Steps from the center and the extreme points of a shape, with the largest perturbations and with none."""
        yield self._step(q, x, shape.center, 0 * shape.center)
        for g in self._directions(shape):
            back = exact(self.triple.step.A[x].T) @ g if isinstance(self.triple.step, Affine) else g
            for u in (shape.extreme_point(back), shape.center):
                yield self._step(q, x, u, extreme_perturbation(g, self.eta, self.triple.norm))

    def _point(self, q: int, u: Exact) -> Witness:
        return self._witness(q, None, u, 0 * u, u)

    def _step(self, q: int, x: int, u: Exact, e: Exact) -> Witness:
        return self._witness(q, self.automaton.symbols[x], u, e, exact(self.triple.step(x, u.astype(float))) + e)

    def _witness(self, q: int, symbol: str | None, u: Exact, e: Exact, lands: Exact) -> Witness:
        read = int(self.triple.readout(lands.astype(float)))
        name = None if read == MISSING else self.automaton.states[read]
        return Witness(self.automaton.states[q], symbol, u.astype(float), e.astype(float), lands.astype(float), name)


@dataclass(frozen=True)
class Rates:
    """How much the cells contract along a word, and how far apart their images are."""

    contraction: float
    """The smallest difference between the width of a cell and that of an image that lands in it."""
    separation: float
    """The smallest distance between images of different states; infinite if there are none."""


def two_rates(triple: Triple, automaton: Semiautomaton, eta: float | Fraction, word: Sequence[int]) -> Rates:
    """Measure the images of all cells under a word. A realization at every length has both of at least 2 eta.

    >>> from exactstate.automata import cyclic
    >>> from paper.theory import one_hot
    >>> two_rates(one_hot(cyclic(3)), cyclic(3), 0.25, [1, 2])
    Rates(contraction=0.5, separation=1.0)
    """
    order = {"inf": np.inf, "2": 2, "1": 1}[triple.norm]
    cells = [_boxes([shape.floats for shape in shapes]) for shapes in triple.cells(Fraction(eta))]
    images = [_image(triple, word, cell) for cell in cells]
    reached = automaton.act(np.array(word, int))
    pairs = [(q, p) for q, p in product(range(automaton.n_states), repeat=2) if reached[q] != reached[p]]
    return Rates(
        min(_width(cells[reached[q]], np.inf) - _width(image, order) for q, image in enumerate(images)),
        min((_distance(images[q], images[p], order) for q, p in pairs), default=float("inf")),
    )


def _image(triple: Triple, word: Sequence[int], cell: Boxes) -> Boxes:
    centers, radii = cell
    step = triple.step
    if isinstance(step, Tables):  # every cell lies in a basin, which is sent to one point
        for symbol in word:
            centers, radii = step(symbol, centers), np.zeros_like(radii)
        return centers, radii
    if isinstance(step, Affine):
        for symbol in word:
            centers = step(symbol, centers)
        return centers, radii @ np.abs(step.word_matrix(word)).T
    raise InvalidInput("the width of an image is known for affine steps and tables; this step is a function.")


def _boxes(pairs: list[tuple[Floats, Floats]]) -> Boxes:
    centers, radii = zip(*pairs, strict=True)
    return np.array(centers), np.array(radii)


def _width(boxes: Boxes, order: float) -> float:
    """The largest distance between two points of the boxes."""
    centers, radii = boxes
    between = np.abs(centers[:, None] - centers[None]) + radii[:, None] + radii[None]
    return float(np.linalg.norm(between, order, axis=-1).max())


def _distance(one: Boxes, other: Boxes, order: float) -> float:
    between = np.abs(one[0][:, None] - other[0][None]) - one[1][:, None] - other[1][None]
    return float(np.linalg.norm(np.maximum(between, 0), order, axis=-1).min())
