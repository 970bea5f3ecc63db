"""The branch of an affine recurrence, by its joint spectral radius, and what it can then track.

    A  matrices of a finite family     d  their size     k  length of words

If some word has spectral radius one or more, no bounded region is invariant: R2 fails, and no automaton is realized. If
all are below one, old inputs are forgotten: R3 fails, unless the automaton is definite. The joint spectral radius of a
family lies for every k between

    max over words of length k of rho(A_w)^(1/k)    and    max over words of length k of ||A_w||^(1/k)

and long words approach it from both sides; no algorithm decides every case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from exactstate.errors import InvalidInput

Name = Literal["contracting", "isometric", "neutral", "expanding", "undecided"]
ROUNDING = 1e-12
"""Error of a computed modulus of one, in float64."""
SINGLE = 1e-6
"""The same for the steps of a layer, in float32."""
WORDS = 5000
"""Words of the greatest length, by default."""
NUMBERS = 1 << 23
"""The most entries of all their matrices together."""

ALLOWS: dict[Name, str] = {
    "contracting": "every word contracts: at most definite automata at every length, others up to O(log 1/eta) steps",
    "isometric": "neither states nor errors are forgotten: no automaton at every length, others up to O(1/eta) steps",
    "neutral": "some word does not contract errors: no automaton at every length",
    "expanding": "some word magnifies errors: no automaton at every length",
    "undecided": "the words up to this length do not decide it; use longer ones",
}


@dataclass(frozen=True, eq=False)
class Branch:
    """A branch and the numbers that decide it."""

    name: Name
    radii: NDArray[np.float64]
    """A: the spectral radius of every matrix."""
    bracket: tuple[float, float]
    """The joint spectral radius lies in it."""
    word: tuple[int, ...] | None
    """A word of spectral radius one or more, if one was found."""

    @property
    def allows(self) -> str:
        return ALLOWS[self.name]

    def explain(self) -> str:
        low, high = self.bracket
        seen = "" if self.word is None else f", seen on the word {' '.join(map(str, self.word))}"
        return f"{self.name}: joint spectral radius in [{low:.6g}, {high:.6g}]{seen}; {self.allows}"


def branch(steps: Any, inputs: Any = None, *, words: int = WORDS, rounding: float | None = None) -> Branch:
    """The branch of a family of matrices (A d d), or of the steps that a layer takes on some inputs (A m).

    >>> branch([[[0.5, 1.0], [0.0, 0.5]]]).name
    'contracting'
    """
    if hasattr(steps, "transitions"):
        if inputs is None:
            raise InvalidInput("the steps of a layer depend on its input: pass some rows of its width as inputs.")
        return branch(_matrices(steps, inputs), words=words, rounding=SINGLE if rounding is None else rounding)
    family = np.asarray(steps)
    family = family[None] if family.ndim == 2 else family
    if family.ndim != 3 or family.shape[1] != family.shape[2] or not len(family):
        raise InvalidInput(f"matrices come as an array (A, d, d) or as one (d, d); got shape {np.shape(steps)}.")
    slack = ROUNDING if rounding is None else rounding
    radii = spectral_radii(family)
    low, high, word = bracket(family, words, slack)
    return Branch(_name(family, low, high, slack), radii, (low, high), word if low >= 1 - slack else None)


def spectral_radii(family: NDArray[Any]) -> NDArray[np.float64]:
    """A d d -> A."""
    return np.abs(np.linalg.eigvals(family)).max(-1)


def bracket(
    family: NDArray[Any], words: int = WORDS, closed: float = ROUNDING
) -> tuple[float, float, tuple[int, ...]]:  # fmt: skip
    """(lower end, upper end, the word that gave the lower end), from all words up to a length.

    The length is the largest for which there are no more than `words` words of it, and at most 64 for one matrix; less
    when the two ends meet earlier.
    """
    A, low, high = len(family), 0.0, np.inf
    words = min(words, NUMBERS // family[0].size)
    composites = family
    best: tuple[int, ...] = (0,)
    words_so_far: list[tuple[int, ...]] = [(a,) for a in range(A)]
    for k in range(1, 65):
        radii = spectral_radii(composites) ** (1 / k)
        if radii.max() > low:
            low, best = float(radii.max()), words_so_far[int(radii.argmax())]
        for order in (1, 2, np.inf):
            high = min(high, float(np.linalg.norm(composites, order, axis=(1, 2)).max()) ** (1 / k))
        if len(composites) * A > words or high - low <= closed:
            break
        composites = np.einsum("aij,wjk->waik", family, composites).reshape(-1, *family.shape[1:])
        words_so_far = [(*word, a) for word in words_so_far for a in range(A)]
    return low, max(low, high), best


def _name(family: NDArray[Any], low: float, high: float, slack: float) -> Name:
    if low > 1 + slack:
        return "expanding"
    if low >= 1 - slack:
        gram = np.conj(family.transpose(0, 2, 1)) @ family
        return "isometric" if np.abs(gram - np.eye(family.shape[1])).max() <= 4 * slack else "neutral"
    return "contracting" if high < 1 - slack else "undecided"


def _matrices(layer: Any, inputs: Any) -> NDArray[Any]:
    """The matrices of the steps that a layer takes on these inputs; most layers return only the diagonal."""
    from exactstate.baselines import PDSSM

    values = layer.transitions(inputs).detach().cpu().numpy()
    values = values.astype(np.complex128 if np.iscomplexobj(values) else np.float64)
    if isinstance(layer, PDSSM):
        return values.reshape(-1, *values.shape[-2:])
    diagonals = values.reshape(-1, values.shape[-2] * values.shape[-1])
    return diagonals[:, :, None] * np.eye(diagonals.shape[1])
