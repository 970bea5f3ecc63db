"""Does a triple realise an automaton at every length? Three conditions on one step, decided on cells.

    R1  every code point lies in its cell and is read as its state
    R2  the region is bounded, and one step and one push of at most eta leave no point outside it
    R3  after one step and one push, the read-out tells the successor of the state that was read before

With cells that the read-out tells apart, R2 and R3 say that every cell, moved and pushed, lies in the cell of the
successor. For boxes under affine maps, and for boxes and balls under tables, that is decided in rational arithmetic:
"proved" or "refuted". Other steps are tried at random points: "refuted", or "sampled" when nothing was found.
A refusal carries its witness: a hidden state, a symbol, a push, and where they lead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product
from typing import Literal

import numpy as np

from detent._types import MISSING
from detent.automata.machine import Semiautomaton
from detent.errors import InvalidConfig, InvalidInput
from paper.theory.shapes import SLACK, Exact, Floats, Moved, Shape, exact, push, sphere
from paper.theory.triples import Affine, Tables, Triple

# -- What a check of the three conditions says: proved, refuted with a witness, or only sampled.

Status = Literal["proved", "refuted", "sampled"]


@dataclass(frozen=True)
class Witness:
    """A step that goes wrong: from `u`, a point of `state`, by `symbol` and the push `e`, to `lands`."""

    state: str
    symbol: str | None
    """None when no step is needed: the point itself is misread."""
    u: Floats
    e: Floats
    lands: Floats
    read: str | None
    """What the read-out tells where it lands; None if nothing."""

    def explain(self) -> str:
        read = "nothing" if self.read is None else repr(self.read)
        if self.symbol is None:
            return f"the point {_short(self.u)} of {self.state!r} is read as {read}"
        moved = f"{self.symbol!r} and the push {_short(self.e)} send {_short(self.u)}, a point of {self.state!r},"
        return f"{moved} to {_short(self.lands)}, read as {read}"


@dataclass(frozen=True)
class Finding:
    """What was found of one condition."""

    condition: str
    status: Status
    witness: Witness | None = None

    def explain(self) -> str:
        return f"{self.condition} {self.status}" + (f": {self.witness.explain()}" if self.witness else "")


@dataclass(frozen=True)
class Realization:
    """The three conditions at one level of perturbation. True unless one of them is refuted."""

    eta: Fraction
    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return all(finding.status != "refuted" for finding in self.findings)

    @property
    def proved(self) -> bool:
        """Whether every condition was decided, and holds: then the triple tracks the automaton at every length."""
        return all(finding.status == "proved" for finding in self.findings)

    def __getitem__(self, condition: str) -> Finding:
        return next(finding for finding in self.findings if finding.condition == condition)

    def explain(self) -> str:
        return "\n".join(finding.explain() for finding in self.findings)


def _short(numbers: Floats) -> str:
    shown = ", ".join(f"{x:.3g}" for x in numbers[:6])
    return f"({shown}{', ...' if len(numbers) > 6 else ''})"


SAMPLES = 2000


def realizes(
    triple: Triple, automaton: Semiautomaton, eta: float | Fraction, *, samples: int = SAMPLES, seed: int = 0
) -> Realization:
    """R1, R2 and R3 of the triple on its own cells at this eta; with all three it tracks the automaton at every length.

    `samples` steps are tried where the conditions cannot be decided.

    >>> from detent.automata import symmetric
    >>> from paper.theory.attractors import one_hot
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
        self.against: dict[str, Witness] = {}
        self.open: set[str] = set()
        """Conditions that were not decided, only tried."""

    def codes(self) -> Finding:
        for q, code in enumerate(exact(self.triple.codes)):
            here = self._point(q, code)
            if here.read != here.state or not any(shape.contains(code) for shape in self.cells[q]):
                return Finding("R1", "refuted", here)
        return Finding("R1", "proved")

    def decide(self, step: Affine | Tables) -> tuple[Finding, Finding]:
        for q, shape in self.shapes:
            if self.triple.readout.on(shape) != q:
                self._blame("R3", self._points(q, shape), lambda point: point.read != point.state)
            for x, successor in enumerate(self.automaton.tables[:, q]):
                for image in step.image(x, shape):
                    held = self._holding(image)
                    if not held:
                        self._blame("R2", self._pushed(q, x, shape), lambda pushed: not self._inside(pushed.lands))
                    if successor not in held:
                        self._blame("R3", self._pushed(q, x, shape), self._misled)
        return self._finding("R2"), self._finding("R3")

    def sample(self, count: int, generator: np.random.Generator) -> tuple[Finding, Finding]:
        self.open = {"R2", "R3"}
        A, d = self.automaton.n_symbols, self.triple.codes.shape[1]
        each = max(1, count // (len(self.shapes) * A))
        eta = float(self.eta) * (1 - SLACK)  # rounding alone must not refute anything
        for (q, shape), x in product(self.shapes, range(A)):
            pushes = eta * sphere(generator, each, d, self.triple.norm)
            for u, e in zip(shape.sample(generator, each), pushes, strict=True):
                tried = self._step(q, x, exact(u), exact(e))
                if not self._inside(tried.lands):
                    self.against.setdefault("R2", tried)
                if self._misled(tried):
                    self.against.setdefault("R3", tried)
        return self._finding("R2"), self._finding("R3")

    def _finding(self, condition: str) -> Finding:
        if condition in self.against:
            return Finding(condition, "refuted", self.against[condition])
        return Finding(condition, "sampled" if condition in self.open else "proved")

    def _blame(self, condition: str, tries: Iterator[Witness], wrong: Callable[[Witness], bool]) -> None:
        """Find the condition's witness among the tries; without one it is not refuted, but not proved either."""
        if condition not in self.against:
            self.open.add(condition)
            self.against.update((condition, tried) for tried in islice(filter(wrong, tries), 1))

    def _near(self, h: Floats) -> list[tuple[int, Shape]]:
        """The shapes that might contain a point."""
        return [self.shapes[i] for i in np.flatnonzero((np.abs(self.centers - h) <= self.reaches).all(1))]

    def _holding(self, image: Moved) -> set[int]:
        """The states in whose cell the image lies, pushes included."""
        near = self._near(image.center.astype(float))
        return {q for q, shape in near if shape.holds(image, self.eta, self.triple.norm)}

    def _inside(self, h: Floats) -> bool:
        return any(shape.contains(exact(h)) for _, shape in self._near(h))

    def _misled(self, step: Witness) -> bool:
        """Whether the read-out does not tell the successor."""
        assert step.symbol is not None
        successor = self.automaton.run([step.symbol], state=step.state)
        return step.read != self.automaton.states[successor]

    def _directions(self, shape: Shape) -> Iterator[Exact]:
        """Towards every code point, and both ways along every coordinate."""
        yield from (code - shape.center for code in exact(self.triple.codes))
        yield from (side * g for g in exact(np.eye(self.triple.codes.shape[1], dtype=int)) for side in (1, -1))

    def _points(self, q: int, shape: Shape) -> Iterator[Witness]:
        return (self._point(q, shape.far_point(g)) for g in self._directions(shape))

    def _pushed(self, q: int, x: int, shape: Shape) -> Iterator[Witness]:
        """Steps from the middle and the ends of a shape, with pushes as long as they may be, and with none."""
        yield self._step(q, x, shape.center, 0 * shape.center)
        for g in self._directions(shape):
            back = exact(self.triple.step.A[x].T) @ g if isinstance(self.triple.step, Affine) else g
            for u in (shape.far_point(back), shape.center):
                yield self._step(q, x, u, push(g, self.eta, self.triple.norm))

    def _point(self, q: int, u: Exact) -> Witness:
        return self._witness(q, None, u, 0 * u, u)

    def _step(self, q: int, x: int, u: Exact, e: Exact) -> Witness:
        return self._witness(q, self.automaton.symbols[x], u, e, exact(self.triple.step(x, u.astype(float))) + e)

    def _witness(self, q: int, symbol: str | None, u: Exact, e: Exact, lands: Exact) -> Witness:
        read = int(self.triple.readout(lands.astype(float)))
        told = None if read == MISSING else self.automaton.states[read]
        return Witness(self.automaton.states[q], symbol, u.astype(float), e.astype(float), lands.astype(float), told)
