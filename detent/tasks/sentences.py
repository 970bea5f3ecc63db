"""The law of Tracking Shuffled Objects: how its stories are drawn.

    N  people, and as many items     B  stories     L  their tokens     K  their sentences

A story tells in order what every person has, then swaps pairs of people, and ends with a question. A sentence has five
tokens. The L mod 5 tokens that are left over are extra dots, each after another sentence, chosen at random; the
question stays the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from detent.automata import Moore
from detent.automata.running import Ints
from detent.errors import InvalidConfig
from detent.tasks.grammar import spell
from detent.tasks.letters import BLOCK
from detent.tasks.vocabulary import SENTENCE, Vocabulary, beginning, following, is_story


@dataclass(frozen=True)
class Stories:
    """Random assignment in the preamble, uniform ordered pairs of distinct people to swap, a uniform item asked for."""

    people: int

    @property
    def n_symbols(self) -> int:
        return len(self.tokens.names)

    @cached_property
    def tokens(self) -> Vocabulary:
        return Vocabulary(self.people)

    def refuse_length(self, length: int) -> None:
        sentences, extra = divmod(length, SENTENCE)
        least = SENTENCE * (self.people + 1)
        if length < least:
            raise InvalidConfig(
                f"a story about {self.people} people has at least {least} tokens "
                f"({self.people} sentences and a question, {SENTENCE} tokens each); got {length}."
            )
        if extra > sentences - 1:
            raise InvalidConfig(
                f"no story about {self.people} people has {length} tokens: {extra} extra dots need as many sentences "
                f"before the question, and there are {sentences - 1}; take {length - 1} or {length + SENTENCE - extra}."
            )

    def blocks(self, batch: int, length: int, generator: np.random.Generator) -> Iterator[Ints]:
        sentences, extra = divmod(length, SENTENCE)
        dots = _dots(batch, sentences - 1, extra, generator)
        plain = self._sentences(batch, sentences, generator)
        return _insert(plain, dots, self.tokens.dot) if extra else plain

    def _sentences(self, batch: int, sentences: int, generator: np.random.Generator) -> Iterator[Ints]:
        """The story without extra dots: the preamble, the swaps in blocks, the question."""
        N, tokens = self.people, self.tokens
        given = generator.permuted(np.tile(np.arange(N), (batch, 1)), axis=1)  # person -> item
        yield tokens.gifts[np.arange(N), given].reshape(batch, N * SENTENCE)
        swaps, at_once = sentences - N - 1, BLOCK // SENTENCE
        for begin in range(0, swaps, at_once):
            count = min(at_once, swaps - begin)
            pairs = generator.integers(0, len(tokens.swaps), (batch, count), dtype=np.uint8)
            yield tokens.swaps[pairs].reshape(batch, count * SENTENCE)
        yield tokens.questions[generator.integers(0, N, batch)]

    def grammar(self, symbols: Sequence[str]) -> Moore:
        tokens = self.tokens
        return spell(
            symbols, start=beginning(), following=lambda place: following(place, tokens), complete=is_story
        )  # fmt: skip

    def describe(self, symbols: Sequence[str]) -> str:
        return (
            f"stories about {self.people} people: who has what at first, swaps of two people drawn uniformly, "
            "and a question; extra dots after random sentences make up the length"
        )


def _dots(batch: int, sentences: int, extra: int, generator: np.random.Generator) -> Ints:
    """Where the extra dots stand (B extra), ascending: after a uniform choice of that many sentences.

    Floyd's way to draw a subset: the i-th draw is from one more than the one before, and a repetition is replaced by
    the sentence that this draw is the first to offer.
    """
    chosen = np.empty((batch, extra), np.int64)
    for i in range(extra):
        newest = sentences - extra + i
        drawn = generator.integers(0, newest + 1, batch)
        chosen[:, i] = np.where((chosen[:, :i] == drawn[:, None]).any(axis=1), newest, drawn)
    return SENTENCE * (np.sort(chosen, axis=1) + 1) + np.arange(extra)


def _insert(plain: Iterator[Ints], dots: Ints, dot: int) -> Iterator[Ints]:
    """The stories with their extra dots, in blocks as wide as those that came, and the rest.

    A token stands later by the number of dots before it, which is at most `extra`: that many columns are held back.
    """
    batch, extra = dots.shape
    held, begin = np.zeros((batch, extra), np.uint8), 0
    for block in chain(plain, [held]):  # the last block only pushes out what is still held back
        window, width = np.concatenate([held, block], axis=1), block.shape[1]
        time = np.arange(begin, begin + width)
        late = np.zeros((batch, width), np.int8)
        for i in range(extra):
            late += dots[:, [i]] < time
        told = np.take_along_axis(window, np.arange(extra, extra + width) - late, axis=1)
        row, which = np.nonzero((dots >= begin) & (dots < begin + width))
        told[row, dots[row, which] - begin] = dot
        yield told
        held, begin = window[:, -extra:], begin + width
