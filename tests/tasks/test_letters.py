"""Letters come with exactly the probabilities that the laws state."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from detent.errors import InvalidConfig
from detent.tasks import Letters, ShortRuns
from detent.tasks import samplers as letters


def drawn(law: Letters | ShortRuns, batch: int, length: int, seed: int = 0) -> np.ndarray:
    blocks = list(law.blocks(batch, length, np.random.default_rng(seed)))
    return np.concatenate(blocks, axis=1)


@pytest.mark.parametrize("weights", [(1, 1), (1,) * 16, (18, 1, 1), (198, 1, 1), (3, 1, 4, 1, 5)])
def test_independent_letters_come_by_their_weights(weights: tuple[int, ...], fits: Any) -> None:
    words = drawn(Letters(weights), 64, 8192)
    share = np.array(weights) / sum(weights)
    assert fits(np.bincount(words.ravel(), minlength=len(weights)), share)
    pairs = np.bincount(
        (words[:, 0::2].astype(int) * len(weights) + words[:, 1::2]).ravel(), minlength=len(weights) ** 2
    )
    assert fits(pairs, np.outer(share, share))


def test_the_chi_square_barks_at_a_wrong_law(fits: Any) -> None:
    words = drawn(Letters((18, 1, 1)), 64, 8192)
    assert not fits(np.bincount(words.ravel(), minlength=3), np.array([17, 2, 1]) / 20)


@pytest.mark.parametrize("length", [0, 1, 2, 8191, 8192, 8193, 20_000])
@pytest.mark.parametrize("law", [Letters.uniform(3), ShortRuns(3, of=0, longest=4)], ids=["letters", "short runs"])
def test_words_have_the_length_that_was_asked(law: Letters | ShortRuns, length: int) -> None:
    assert sum(block.shape[1] for block in law.blocks(2, length, np.random.default_rng(0))) == length


def probability(word: tuple[int, ...], symbols: int, of: int, longest: int) -> Fraction:
    """The law in the paper's words: uniform, except that so many in a row are always followed by another letter."""
    chance = Fraction(1)
    for t, letter in enumerate(word):
        if t >= longest and word[t - longest : t] == (of,) * longest:
            chance *= Fraction(0 if letter == of else 1, symbols - 1)
        else:
            chance *= Fraction(1, symbols)
    return chance


@pytest.mark.parametrize(
    ("symbols", "of", "longest", "length"), [(3, 0, 4, 6), (3, 1, 2, 5), (2, 1, 3, 9), (4, 2, 1, 3)]
)
def test_short_runs_have_the_law_that_they_state_on_every_word(
    symbols: int, of: int, longest: int, length: int
) -> None:
    task = ShortRuns(symbols, of=of, longest=longest).generating_machine
    dice = np.array(list(product(range(task.n_symbols), repeat=length)))
    words, counts = np.unique(task.output_ids(dice), axis=0, return_counts=True)
    found = {tuple(word.tolist()): Fraction(int(count), len(dice)) for word, count in zip(words, counts, strict=True)}
    for word in product(range(symbols), repeat=length):
        assert found.get(word, Fraction(0)) == probability(word, symbols, of, longest)


def test_short_runs_are_drawn_as_they_are_stated(fits: Any) -> None:
    words = drawn(ShortRuns(3, of=0, longest=4), 4096, 60)[:, -5:]  # long after the start
    number = words @ (3 ** np.arange(5))
    seen = np.bincount(number, minlength=3**5)
    # the stationary chance of a run of k identities so far is proportional to 3^-k
    stationary = np.array([Fraction(1, 3**k) for k in range(5)]) / sum(Fraction(1, 3**k) for k in range(5))
    expected = np.zeros(3**5)
    for word in product(range(3), repeat=5):
        chances = [probability((0,) * k + word, 3, 0, 4) / probability((0,) * k, 3, 0, 4) for k in range(5)]
        # a history of k identities stands after another letter, which `probability` reads as the start of the word
        expected[np.array(word) @ (3 ** np.arange(5))] = float(sum(stationary * np.array(chances)))
    possible = expected > 0
    assert not seen[~possible].any()
    assert fits(seen[possible], expected[possible])


def test_runs_stay_short_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "BLOCK", 7)
    words = drawn(ShortRuns(3, of=0, longest=4), 500, 100)
    five = np.lib.stride_tricks.sliding_window_view(words, 5, axis=1)
    assert not (five == 0).all(axis=-1).any()
    assert (five[..., :4] == 0).all(axis=-1).any()


def test_the_grammar_of_short_runs_is_the_words_that_can_be_drawn() -> None:
    grammar = ShortRuns(3, of=0, longest=4).grammar(("i", "r", "s"))
    for word in product(range(3), repeat=6):
        verdict = grammar.outputs[grammar.readout[grammar.run(word)]]
        assert verdict == ("complete" if probability(word, 3, 0, 4) else "refused")


@pytest.mark.parametrize("weights", [(), (1, 0), (-1, 2)])
def test_weights_that_are_none_are_refused(weights: tuple[int, ...]) -> None:
    with pytest.raises(InvalidConfig, match="positive integer weights; got"):
        Letters(weights)


@pytest.mark.parametrize(("symbols", "of", "longest"), [(1, 0, 4), (3, 3, 4), (3, 0, 0)])
def test_runs_that_cannot_be_cut_are_refused(symbols: int, of: int, longest: int) -> None:
    with pytest.raises(InvalidConfig, match="runs of one of at least two letters"):
        ShortRuns(symbols, of=of, longest=longest)


def test_the_laws_say_what_they_do() -> None:
    names = ("identity", "reset", "set")
    assert Letters.uniform(3).describe(names) == "letters drawn uniformly"
    assert Letters((18, 1, 1)).describe(names) == "letters drawn independently: identity 0.9, reset 0.05, set 0.05"
    assert ShortRuns(3, of=0, longest=4).describe(names) == (
        "letters drawn uniformly, but 4 times identity in a row is always followed by another letter"
    )
