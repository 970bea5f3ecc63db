"""How far an affine recurrence can be trusted, and the pushes that make it fail where the bound says.

    C  distance of two code points     kappa  largest operator norm of a step     eta  largest push     L  length

Two runs from different code points must not end in one point while the automaton keeps their states apart. A
contracting model draws them together: after L steps they are at most C kappa^L apart, and at 2 eta one push each makes
them meet. An isometric model keeps them C apart, but it also keeps every push: L of them on either side close 2 eta L.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, log

import numpy as np

from detent.automata.machine import Semiautomaton
from detent.errors import InvalidConfig
from paper.theory.shapes import Floats
from paper.theory.triples import Affine

TOLERANCE = 1e-12
"""Two ends this close, relative to their gap without pushes, have met; and an isometry may be this far from one."""


def contracting_horizon(kappa: float, C: float, eta: float) -> int:
    """The longest L with C kappa^L > 2 eta: no guarantee for a target that is not definite goes beyond it.

    >>> contracting_horizon(0.5, C=2, eta=1 / 1024)
    9
    """
    _check(C, eta)
    if not 0 < kappa < 1:
        raise InvalidConfig(f"a contracting model has 0 < kappa < 1; got {kappa}.")
    L = max(0, ceil(log(C / (2 * eta)) / log(1 / kappa)) - 1)
    while C * kappa ** (L + 1) > 2 * eta:  # the logarithms may have been rounded the wrong way
        L += 1
    while L and C * kappa**L <= 2 * eta:
        L -= 1
    return L


def contracting_precision(kappa: float, C: float, L: int) -> float:
    """Staying right on all words up to length L takes pushes below this."""
    return C * kappa**L / 2


def isometric_horizon(C: float, eta: float) -> int:
    """The longest L with 2 eta L < C: no guarantee goes beyond it.

    >>> isometric_horizon(C=2, eta=0.1)
    9
    """
    _check(C, eta)
    L = max(0, ceil(C / (2 * eta)) - 1)
    while 2 * eta * (L + 1) < C:
        L += 1
    while L and 2 * eta * L >= C:
        L -= 1
    return L


def isometric_precision(C: float, L: int) -> float:
    """Staying right on all words up to length L takes pushes below this."""
    return C / (2 * L)


@dataclass(frozen=True, eq=False)
class Meeting:
    """Pushes that bring the runs of one word from two code points to one point, so that one of them is read wrongly."""

    word: tuple[int, ...]
    states: tuple[int, int]
    pushes: tuple[Floats, Floats]
    """L d each, for the run from either state."""


def meet_at_the_end(step: Affine, codes: Floats, word: Sequence[int], q: int, p: int, eta: float) -> Meeting | None:
    """Push only the last step of both runs, to the middle; None if it is farther than eta away."""
    half = step.along(word) @ (codes[p] - codes[q]) / 2
    if np.linalg.norm(half) > eta:
        return None
    pushes = np.zeros((len(word), codes.shape[1]))
    pushes[-1] = half
    return Meeting(tuple(word), (q, p), (pushes, -pushes))


def meet_on_the_way(step: Affine, codes: Floats, word: Sequence[int], q: int, p: int, eta: float) -> Meeting | None:
    """Push every step of both runs of an isometry towards the other; None if that is not enough. Nothing else is.

    What push t does to the end is B_t e_t with B_t an isometry, so e_t = B_t^T v adds its full length along v.
    """
    for A in step.A:
        if np.abs(A.T @ A - np.eye(len(A))).max() > TOLERANCE:
            raise InvalidConfig("this adversary is for isometries; some matrix stretches or shrinks a vector.")
    gap = step.along(word) @ (codes[p] - codes[q])
    share = float(np.linalg.norm(gap)) / (2 * len(word))
    if share > eta * (1 + TOLERANCE):
        return None
    pushes = np.zeros((len(word), codes.shape[1]))
    along = gap / np.linalg.norm(gap)
    for t in range(len(word) - 1, -1, -1):
        pushes[t] = share * along
        along = step.A[word[t]].T @ along
    return Meeting(tuple(word), (q, p), (pushes, -pushes))


def ends(step: Affine, codes: Floats, meeting: Meeting) -> tuple[Floats, Floats]:
    """Where the two pushed runs end."""
    found = []
    for state, pushes in zip(meeting.states, meeting.pushes, strict=True):
        h = codes[state]
        for symbol, e in zip(meeting.word, pushes, strict=True):
            h = step(symbol, h) + e
        found.append(h)
    return found[0], found[1]


def first_meeting(
    step: Affine, codes: Floats, automaton: Semiautomaton, eta: float, longest: int, *, isometric: bool
) -> Meeting | None:  # fmt: skip
    """The shortest word on which two runs meet that must not, among all words up to `longest`: small cases only."""
    adversary = meet_on_the_way if isometric else meet_at_the_end
    for length in range(1, longest + 1):
        for word in product(range(automaton.n_symbols), repeat=length):
            reached = automaton.act(np.array(word))
            for q, p in product(range(automaton.n_states), repeat=2):
                if q < p and reached[q] != reached[p]:
                    meeting = adversary(step, codes, word, q, p, eta)
                    if meeting is not None:
                        return meeting
    return None


def _check(C: float, eta: float) -> None:
    if not (eta > 0 and C > 0):
        raise InvalidConfig(f"code points are apart and pushes positive; got C = {C} and eta = {eta}.")
