"""Samplers draw letters with exactly the probabilities that they state."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from exactstate.errors import InvalidConfig
from exactstate.tasks import BoundedRuns, IidLetters, samplers


def draw(sampler: IidLetters | BoundedRuns, batch: int, length: int, seed: int = 0) -> np.ndarray:
    blocks = list(sampler.blocks(batch, length, np.random.default_rng(seed)))
    return np.concatenate(blocks, axis=1)


@pytest.mark.parametrize("weights", [(1, 1), (1,) * 16, (18, 1, 1), (198, 1, 1), (3, 1, 4, 1, 5)])
def test_iid_letters_have_the_stated_probabilities(weights: tuple[int, ...], fits: Any) -> None:
    words = draw(IidLetters(weights), 64, 8192)
    share = np.array(weights) / sum(weights)
    assert fits(np.bincount(words.ravel(), minlength=len(weights)), share)
    pairs = np.bincount(
        (words[:, 0::2].astype(int) * len(weights) + words[:, 1::2]).ravel(), minlength=len(weights) ** 2
    )
    assert fits(pairs, np.outer(share, share))


def test_chi_square_rejects_a_wrong_distribution(fits: Any) -> None:
    words = draw(IidLetters((18, 1, 1)), 64, 8192)
    assert not fits(np.bincount(words.ravel(), minlength=3), np.array([17, 2, 1]) / 20)


@pytest.mark.parametrize("length", [0, 1, 2, 8191, 8192, 8193, 20_000])
@pytest.mark.parametrize(
    "sampler", [IidLetters.uniform(3), BoundedRuns(3, letter=0, longest=4)], ids=["letters", "bounded runs"]
)
def test_blocks_add_up_to_the_length(sampler: IidLetters | BoundedRuns, length: int) -> None:
    assert sum(block.shape[1] for block in sampler.blocks(2, length, np.random.default_rng(0))) == length


def probability(word: tuple[int, ...], symbols: int, letter: int, longest: int) -> Fraction:
    """The paper's definition: uniform, except that so many in a row are always followed by another letter."""
    chance = Fraction(1)
    for t, drawn in enumerate(word):
        if t >= longest and word[t - longest : t] == (letter,) * longest:
            chance *= Fraction(0 if drawn == letter else 1, symbols - 1)
        else:
            chance *= Fraction(1, symbols)
    return chance


@pytest.mark.parametrize(
    ("symbols", "letter", "longest", "length"), [(3, 0, 4, 6), (3, 1, 2, 5), (2, 1, 3, 9), (4, 2, 1, 3)]
)
def test_bounded_runs_have_the_stated_probability_on_every_word(
    symbols: int, letter: int, longest: int, length: int
) -> None:
    machine = BoundedRuns(symbols, letter=letter, longest=longest).generating_machine
    draws = np.array(list(product(range(machine.n_symbols), repeat=length)))
    words, counts = np.unique(machine.output_ids(draws), axis=0, return_counts=True)
    found = {tuple(word.tolist()): Fraction(int(count), len(draws)) for word, count in zip(words, counts, strict=True)}
    for word in product(range(symbols), repeat=length):
        assert found.get(word, Fraction(0)) == probability(word, symbols, letter, longest)


def test_bounded_runs_are_drawn_with_the_stated_probabilities(fits: Any) -> None:
    words = draw(BoundedRuns(3, letter=0, longest=4), 4096, 60)[:, -5:]  # long after the start
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


def test_bounded_runs_stay_bounded_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplers, "BLOCK", 7)
    words = draw(BoundedRuns(3, letter=0, longest=4), 500, 100)
    five = np.lib.stride_tricks.sliding_window_view(words, 5, axis=1)
    assert not (five == 0).all(axis=-1).any()
    assert (five[..., :4] == 0).all(axis=-1).any()


def test_bounded_runs_grammar_is_the_words_of_positive_probability() -> None:
    grammar = BoundedRuns(3, letter=0, longest=4).grammar(("i", "r", "s"))
    for word in product(range(3), repeat=6):
        verdict = grammar.outputs[grammar.readout[grammar.run(word)]]
        assert verdict == ("complete" if probability(word, 3, 0, 4) else "refused")


@pytest.mark.parametrize("weights", [(), (1, 0), (-1, 2)])
def test_iid_letters_refuse_weights_that_are_not_positive(weights: tuple[int, ...]) -> None:
    with pytest.raises(InvalidConfig, match="positive integer weights; got"):
        IidLetters(weights)


@pytest.mark.parametrize(("symbols", "letter", "longest"), [(1, 0, 4), (3, 3, 4), (3, 0, 0)])
def test_bounded_runs_refuse_impossible_bounds(symbols: int, letter: int, longest: int) -> None:
    with pytest.raises(InvalidConfig, match="runs of one of at least two letters"):
        BoundedRuns(symbols, letter=letter, longest=longest)


def test_describe_samplers() -> None:
    names = ("identity", "reset", "set")
    assert IidLetters.uniform(3).describe(names) == "letters drawn uniformly"
    assert IidLetters((18, 1, 1)).describe(names) == "letters drawn independently: identity 0.9, reset 0.05, set 0.05"
    assert BoundedRuns(3, letter=0, longest=4).describe(names) == (
        "letters drawn uniformly, but 4 times identity in a row is always followed by another letter"
    )
