"""Two rates in one map: along every word cells shrink, by 2 eta at least, and stay 2 eta apart. Measured on cells.

    q  a state     U_q  its cell     w  a word

What is held at every length must do both at once, whatever the length of the word: the image of U_q is 2 eta narrower
than the cell it lands in, and images that belong to different states are 2 eta apart. Distances are in the norm of the
triple for tables, and in the largest-entry norm for affine steps, whose images are enclosed in boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from detent.automata.machine import Semiautomaton
from detent.errors import InvalidInput
from paper.theory.shapes import Floats
from paper.theory.triples import Affine, Tables, Triple

Boxes = tuple[Floats, Floats]
"""Centers and half widths, k d each."""


@dataclass(frozen=True)
class Rates:
    """How wide and how far apart the images of cells are, for one word."""

    narrower: float
    """The least difference between the width of a cell and that of an image that lands in it."""
    apart: float
    """The least distance of two images that belong to different states; infinite if there are none."""


def two_rates(triple: Triple, automaton: Semiautomaton, eta: float | Fraction, word: Sequence[int]) -> Rates:
    """Measure the images of all cells under a word. Held at every length, both numbers are at least 2 eta.

    >>> from detent.automata import cyclic
    >>> from paper.theory import one_hot
    >>> two_rates(one_hot(cyclic(3)), cyclic(3), 0.25, [1, 2])
    Rates(narrower=0.5, apart=1.0)
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
        return centers, radii @ np.abs(step.along(word)).T
    raise InvalidInput("widths of images are known for affine steps and for tables; this step is a function.")


def _boxes(pairs: list[tuple[Floats, Floats]]) -> Boxes:
    centers, radii = zip(*pairs, strict=True)
    return np.array(centers), np.array(radii)


def _width(boxes: Boxes, order: float) -> float:
    """The largest distance of two points; both in one coordinate, or both single points."""
    centers, radii = boxes
    between = np.abs(centers[:, None] - centers[None]) + radii[:, None] + radii[None]
    return float(np.linalg.norm(between, order, axis=-1).max())


def _distance(one: Boxes, other: Boxes, order: float) -> float:
    between = np.abs(one[0][:, None] - other[0][None]) - one[1][:, None] - other[1][None]
    return float(np.linalg.norm(np.maximum(between, 0), order, axis=-1).min())
