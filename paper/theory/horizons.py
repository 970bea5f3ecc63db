"""How long an affine recurrence tracks an automaton, and the perturbations that make it fail where the bound says.

    C  distance of two code points     kappa  largest operator norm of a step     eta  largest perturbation
    L  length     w  a word     A_w  its matrix

Two runs from different code points must not end in one point while the automaton keeps their states apart. A
contracting model draws them together: after L steps they are at most C kappa^L apart, and at 2 eta one perturbation
each makes them collide. An isometric model keeps them C apart, but it also keeps every perturbation: L of them on
either side close 2 eta L.

If the automaton is not definite, some word w keeps two states apart however often it is read, and `refute` builds the
perturbations of the proof: either rho(A_w) < 1, and the runs from two code points are drawn together until they
collide; or rho(A_w) >= 1, and perturbations along (A_w^T)^j v add up without bound, so that no bounded region is
invariant. If the automaton is definite, only a word of spectral radius one or more refutes the recurrence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, log

import numpy as np

from exactstate.automata.machine import Semiautomaton
from exactstate.automata.properties.definite import definite
from exactstate.errors import BudgetExceeded, InvalidConfig
from paper.theory.branches import ROUNDING, bracket, spectral_radii
from paper.theory.shapes import Floats
from paper.theory.triples import Affine

TOLERANCE = 1e-12
"""Relative tolerance: of the distance between two ends that have collided, and of the norms of an isometry."""
REPEATS = 100_000
"""The most repetitions of a word."""


def contracting_horizon(kappa: float, C: float, eta: float) -> int:
    """The largest L with C kappa^L > 2 eta: no guarantee for a target that is not definite goes beyond it.

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
    """Perturbations must be below this to be right on all words up to length L."""
    return C * kappa**L / 2


def isometric_horizon(C: float, eta: float) -> int:
    """The largest L with 2 eta L < C: no guarantee goes beyond it.

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
    """Perturbations must be below this to be right on all words up to length L."""
    return C / (2 * L)


@dataclass(frozen=True, eq=False)
class Collision:
    """Perturbations that bring the runs of a word from two code points to one point, so that one is read wrongly."""

    word: tuple[int, ...]
    states: tuple[int, int]
    perturbations: tuple[Floats, Floats]
    """L d each, for the run from either state."""


def collide_at_end(step: Affine, codes: Floats, word: Sequence[int], q: int, p: int, eta: float) -> Collision | None:
    """Perturb only the last step of both runs, to the midpoint; None if it is farther than eta away."""
    half = step.word_matrix(word) @ (codes[p] - codes[q]) / 2
    if np.linalg.norm(half) > eta:
        return None
    perturbations = np.zeros((len(word), codes.shape[1]))
    perturbations[-1] = half
    return Collision(tuple(word), (q, p), (perturbations, -perturbations))


def collide_gradually(step: Affine, codes: Floats, word: Sequence[int], q: int, p: int, eta: float) -> Collision | None:
    """Perturb every step of both runs of an isometry towards the other; None if that, the best there is, fails.

    Perturbation t changes the end by B_t e_t with B_t an isometry, so e_t = B_t^T v adds its full length along v.
    """
    for A in step.A:
        if np.abs(A.T @ A - np.eye(len(A))).max() > TOLERANCE:
            raise InvalidConfig("this adversary is for isometries; some matrix changes the norm of a vector.")
    gap = step.word_matrix(word) @ (codes[p] - codes[q])
    share = float(np.linalg.norm(gap)) / (2 * len(word))
    if share > eta * (1 + TOLERANCE):
        return None
    perturbations = np.zeros((len(word), codes.shape[1]))
    along = gap / np.linalg.norm(gap)
    for t in range(len(word) - 1, -1, -1):
        perturbations[t] = share * along
        along = step.A[word[t]].T @ along
    return Collision(tuple(word), (q, p), (perturbations, -perturbations))


def ends(step: Affine, codes: Floats, collision: Collision) -> tuple[Floats, Floats]:
    """The ends of the two perturbed runs."""
    found = []
    for state, perturbations in zip(collision.states, collision.perturbations, strict=True):
        h = codes[state]
        for symbol, e in zip(collision.word, perturbations, strict=True):
            h = step(symbol, h) + e
        found.append(h)
    return found[0], found[1]


def shortest_collision(
    step: Affine, codes: Floats, automaton: Semiautomaton, eta: float, max_length: int, *, isometric: bool
) -> Collision | None:  # fmt: skip
    """The shortest word up to `max_length` on which two runs collide that must not. Searches all words."""
    adversary = collide_gradually if isometric else collide_at_end
    for length in range(1, max_length + 1):
        for word in product(range(automaton.n_symbols), repeat=length):
            reached = automaton.act(np.array(word))
            for q, p in product(range(automaton.n_states), repeat=2):
                if q < p and reached[q] != reached[p]:
                    collision = adversary(step, codes, word, q, p, eta)
                    if collision is not None:
                        return collision
    return None


def _check(C: float, eta: float) -> None:
    if not (eta > 0 and C > 0):
        raise InvalidConfig(f"the distance of code points and eta must be positive; got C = {C} and eta = {eta}.")


@dataclass(frozen=True, eq=False)
class Escape:
    """Perturbations that move two runs of a word from one code point farther apart than the diameter of a region."""

    word: tuple[int, ...]
    perturbations: tuple[Floats, Floats]
    """L d each."""
    distance: float
    """Lower bound of the distance between the two ends."""


def refute(
    step: Affine, codes: Floats, automaton: Semiautomaton, eta: float, *, diameter: float | None = None
) -> Collision | Escape | None:  # fmt: skip
    """Perturbations (Euclidean norm) that show that this recurrence does not track the automaton at every length.

    None if the theorem permits it: the automaton is definite and no word of spectral radius one or more was found. A
    region is refuted up to a diameter, by default ten times that of the code.
    """
    if eta <= 0:
        raise InvalidConfig(f"a perturbation level is positive; got {eta}.")
    fact = definite(automaton)
    wide = diameter or 10 * max(float(np.linalg.norm(codes[:, None] - codes[None], axis=-1).max()), eta)
    if fact.order is not None:
        low, _, best = bracket(step.A)
        return escape(step, best, eta, wide) if low >= 1 - ROUNDING else None
    assert fact.apart is not None
    word = tuple(automaton.encode(fact.word).tolist())
    if spectral_radii(step.word_matrix(word)[None])[0] >= 1 - ROUNDING:
        return escape(step, word, eta, wide)
    q, p = (automaton.state_number(name) for name in fact.apart)
    return collide(step, codes, word, q, p, eta)


def collide(step: Affine, codes: Floats, word: tuple[int, ...], q: int, p: int, eta: float) -> Collision:
    """Read a word of spectral radius below one until the runs from two code points can be made to collide."""
    gap, whole = codes[p] - codes[q], step.word_matrix(word)
    for times in range(1, REPEATS + 1):
        gap = whole @ gap
        if np.linalg.norm(gap) <= 2 * eta:
            collision = collide_at_end(step, codes, times * word, q, p, eta * (1 + ROUNDING))
            if collision is not None:
                return collision
    raise BudgetExceeded(f"the runs have not collided after {REPEATS} repetitions: use a larger eta.")


def escape(step: Affine, word: tuple[int, ...], eta: float, diameter: float) -> Escape:
    """Read a word of spectral radius at least one, perturbed once per repetition, until two runs are so far apart."""
    whole = step.word_matrix(word)
    v = _slowest_vector(whole.T)
    # newest first: the perturbation of j repetitions ago has been multiplied by A_w^j
    perturbations, distance, back = [], 0.0, v
    while distance <= diameter:
        length = float(np.linalg.norm(back))
        perturbations.append(eta * back / length if length > 0 else 0 * back)
        distance += 2 * eta * length
        back = whole.T @ back
        if len(perturbations) > REPEATS:
            raise BudgetExceeded(f"the runs are {distance:.3g} apart after {REPEATS} repetitions: use a larger eta.")
    whole_run = np.zeros((len(perturbations), len(word), len(v)))
    whole_run[:, -1] = perturbations[::-1]
    flat = whole_run.reshape(-1, len(v))
    return Escape(len(perturbations) * word, (flat, -flat), distance)


def _slowest_vector(matrix: Floats) -> Floats:
    """A unit vector whose images stay long: of the leading eigenvector and the axes, the one with the largest sum."""
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
