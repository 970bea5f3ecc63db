"""Perturbed runs: every step has an error of at most eta, random or adversarial.

    L  length     d  numbers of a hidden state

A run with perturbations e_1 .. e_L is h_t = step(x_t, h_{t-1}) + e_t. For an affine step the worst perturbations in a
direction g are known: e_t changes the end by B_t e_t, with B_t the matrix of the rest of the word, so e_t is B_t^T g.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from exactstate._types import Ints
from exactstate.automata.machine import Semiautomaton
from paper.theory.shapes import Floats, Norm, unit_vectors
from paper.theory.triples import Affine, Triple


@dataclass(frozen=True, eq=False)
class Failure:
    """A perturbed run that ends in a hidden state read wrongly."""

    word: tuple[int, ...]
    state: int
    perturbations: Floats
    path: Floats
    read: int
    wanted: int


def perturbed(triple: Triple, word: Sequence[int], state: int, perturbations: Floats) -> Floats:
    """L d: hidden states after every symbol."""
    h, path = triple.codes[state], []
    for symbol, e in zip(word, perturbations, strict=True):
        h = triple.step(symbol, h) + e
        path.append(h)
    return np.array(path).reshape(len(word), triple.codes.shape[1])


def random_perturbations(triple: Triple, length: int, eta: float, generator: np.random.Generator) -> Floats:
    """L d: perturbations of length eta in random directions."""
    return float(eta) * unit_vectors(generator, length, triple.codes.shape[1], triple.norm)


def worst_perturbations(triple: Triple, word: Sequence[int], g: Floats, eta: float | Fraction) -> Floats:
    """L d: the perturbations that carry the end of the run farthest along g; for steps that restore, one at the end."""
    perturbations = np.zeros((len(word), len(g)))
    for t in range(len(word) - 1, -1, -1):
        perturbations[t] = _extreme_perturbation(g, float(eta), triple.norm)
        if not isinstance(triple.step, Affine):
            break
        g = triple.step.A[word[t]].T @ g
    return perturbations


def wrong_steps(triple: Triple, automaton: Semiautomaton, word: Sequence[int], state: int, path: Floats) -> Ints:
    """The steps, counted from 1, after which the read-out is not the state of the automaton."""
    wanted = automaton.trajectory(np.array(word, int)[None], state)[0]
    return np.flatnonzero(triple.readout(path) != wanted) + 1


def attack(triple: Triple, automaton: Semiautomaton, word: Sequence[int], eta: float | Fraction) -> Failure | None:
    """A failure on this word under the worst perturbations from every state to every wrong cell; None if there is none.

    Exact for affine steps whose cells are boxes around the points that exact runs visit, as in a shift register.
    """
    for state in range(automaton.n_states):
        end, wanted = triple.run(word, state)[-1], automaton.run(np.array(word, int), state)
        for q, shapes in enumerate(triple.cells(Fraction(eta))):
            for shape in shapes if q != wanted else ():
                perturbations = worst_perturbations(triple, word, shape.floats[0] - end, eta)
                path = perturbed(triple, word, state, perturbations)
                read = int(triple.readout(path[-1]))
                if read != wanted:
                    return Failure(tuple(word), state, perturbations, path, read, wanted)
    return None


def shortest_attack(
    triple: Triple, automaton: Semiautomaton, eta: float | Fraction, lengths: Iterable[int]
) -> Failure | None:  # fmt: skip
    """The first failure among all words of these lengths."""
    for length in lengths:
        for word in product(range(automaton.n_symbols), repeat=length):
            failure = attack(triple, automaton, word, eta)
            if failure is not None:
                return failure
    return None


def _extreme_perturbation(g: Floats, eta: float, norm: Norm) -> Floats:
    """The vector of norm eta with the largest inner product with g."""
    if norm == "inf":
        return eta * np.sign(g)
    if norm == "1":
        return eta * np.sign(g) * (np.arange(len(g)) == np.abs(g).argmax())
    return eta * g / max(float(np.linalg.norm(g)), np.finfo(float).tiny)
