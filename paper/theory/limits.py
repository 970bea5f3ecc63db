"""Why an affine recurrence does not track an automaton at every length: the pushes, built as in the proof.

    w  a word     A_w  its matrix     C  distance of two code points

If the automaton is not definite, some word w keeps two states apart however often it is read. Either rho(A_w) < 1, and
the two code points, C apart, are drawn together until one push each makes their runs meet; or rho(A_w) >= 1, and pushes
along (A_w^T)^j v add up without end, so that no bounded region is held. If the automaton is definite, only a word of
spectral radius one or more can be held against the recurrence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detent.automata.machine import Semiautomaton
from detent.automata.properties.definite import definite
from detent.errors import BudgetExceeded, InvalidConfig
from paper.theory.branches import ROUNDING, bracket, spectral_radii
from paper.theory.horizons import Meeting, meet_at_the_end
from paper.theory.shapes import Floats
from paper.theory.triples import Affine

REPEATS = 100_000
"""How often a word is read at most before giving up."""


@dataclass(frozen=True, eq=False)
class Leaving:
    """Pushes that carry two runs of one word from one code point farther apart than any region of that diameter."""

    word: tuple[int, ...]
    pushes: tuple[Floats, Floats]
    """L d each."""
    apart: float
    """How far the two ends are from each other, at least."""


def refute(
    step: Affine, codes: Floats, automaton: Semiautomaton, eta: float, *, diameter: float | None = None
) -> Meeting | Leaving | None:  # fmt: skip
    """The pushes, in the Euclidean norm, that show that this recurrence does not track the automaton at every length.

    None where the theorem allows it: a definite automaton, and no word of spectral radius one or more was found. A
    region is refuted up to a diameter, by default ten times that of the code.
    """
    if eta <= 0:
        raise InvalidConfig(f"a perturbation level is positive; got {eta}.")
    fact = definite(automaton)
    wide = diameter or 10 * max(float(np.linalg.norm(codes[:, None] - codes[None], axis=-1).max()), eta)
    if fact.order is not None:
        low, _, best = bracket(step.A)
        return leave(step, best, eta, wide) if low >= 1 - ROUNDING else None
    assert fact.apart is not None
    word = tuple(automaton.encode(fact.word).tolist())
    if spectral_radii(step.along(word)[None])[0] >= 1 - ROUNDING:
        return leave(step, word, eta, wide)
    q, p = (automaton.state_number(name) for name in fact.apart)
    return merge(step, codes, word, q, p, eta)


def merge(step: Affine, codes: Floats, word: tuple[int, ...], q: int, p: int, eta: float) -> Meeting:
    """Read a word of spectral radius below one until the runs from two code points can be made to meet."""
    gap, whole = codes[p] - codes[q], step.along(word)
    for times in range(1, REPEATS + 1):
        gap = whole @ gap
        if np.linalg.norm(gap) <= 2 * eta:
            meeting = meet_at_the_end(step, codes, times * word, q, p, eta * (1 + ROUNDING))
            if meeting is not None:
                return meeting
    raise BudgetExceeded(f"the runs have not met after {REPEATS} repetitions: take a larger eta.")


def leave(step: Affine, word: tuple[int, ...], eta: float, diameter: float) -> Leaving:
    """Read a word of spectral radius at least one, pushed once each time, until two runs are so far apart."""
    whole = step.along(word)
    v = _lasting(whole.T)
    # newest push first: what was pushed j repetitions ago has been multiplied by A_w^j
    pushes, apart, back = [], 0.0, v
    while apart <= diameter:
        length = float(np.linalg.norm(back))
        pushes.append(eta * back / length if length > 0 else 0 * back)
        apart += 2 * eta * length
        back = whole.T @ back
        if len(pushes) > REPEATS:
            raise BudgetExceeded(f"the runs are {apart:.3g} apart after {REPEATS} repetitions: take a larger eta.")
    whole_run = np.zeros((len(pushes), len(word), len(v)))
    whole_run[:, -1] = pushes[::-1]
    flat = whole_run.reshape(-1, len(v))
    return Leaving(len(pushes) * word, (flat, -flat), apart)


def _lasting(matrix: Floats) -> Floats:
    """A unit vector whose images stay long: of the leading eigenvector and the axes, the one that goes farthest."""
    values, vectors = np.linalg.eig(matrix)
    leading = vectors[:, np.abs(values).argmax()]
    candidates = np.stack([*np.eye(len(matrix)), leading.real, leading.imag])
    lengths = np.linalg.norm(candidates, axis=1)
    candidates = candidates[lengths > 0] / lengths[lengths > 0, None]
    images, total = candidates, np.zeros(len(candidates))
    for _ in range(64):
        total += np.linalg.norm(images, axis=1)
        images = images @ matrix.T
    return candidates[total.argmax()]
