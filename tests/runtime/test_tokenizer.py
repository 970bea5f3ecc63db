"""Tokenizing text in chunks that are split anywhere."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from exactstate.errors import InvalidWord
from exactstate.runtime.alphabet import Alphabet
from exactstate.runtime.tokenizer import Tokenizer, Unknown


def read(text: bytes, symbols: tuple[str, ...], cuts: list[int], unknown: Unknown = "error") -> list[list[int]]:
    """The symbols of every line, the last one included, from text that comes in chunks."""
    tokenizer = Tokenizer(Alphabet(symbols), unknown=unknown)
    lines: list[list[int]] = [[]]
    edges = [0, *cuts, len(text)]
    pieces = [tokenizer.feed(text[begin:end]) for begin, end in pairwise(edges)] + [tokenizer.finish()]
    tokenizer.refuse_unknown()
    for piece in pieces:
        numbers, begin = piece.numbers.tolist(), 0
        for end in piece.breaks.tolist():
            lines[-1] += numbers[begin:end]
            lines.append([])
            begin = end
        lines[-1] += numbers[begin:]
    return lines


WORDS = ("alice", "bob", "has", ".", "the key", "the", "the big key", "käse")
SPOKEN = "alice has the key .\n\nbob has  the big key\t. the\nkäse the\r\n key alice".encode()
MEANT = [[0, 2, 4, 3], [], [1, 2, 6, 3, 5], [7, 5], None]


def test_tokenizer_words_split_anywhere() -> None:
    known = (*WORDS, "key")
    expected = [*MEANT[:-1], [8, 0]]
    assert read(SPOKEN, known, []) == expected
    for cut in range(len(SPOKEN) + 1):
        assert read(SPOKEN, known, [cut]) == expected
    assert read(SPOKEN, known, list(range(1, len(SPOKEN)))) == expected
    rng = np.random.default_rng(0)
    for _ in range(100):
        assert read(SPOKEN, known, sorted(rng.integers(0, len(SPOKEN), 6).tolist())) == expected


@pytest.mark.parametrize(
    ("symbols", "text", "meant"),
    [
        (("a", "b"), "ab ba\n\n a\tb\r\nb", [[0, 1, 1, 0], [], [0, 1], [1]]),
        (("ä", "λ", "🙂"), "λä 🙂\nä", [[1, 0, 2], [0]]),
        (("a", " "), "a a\n  ", [[0, 1, 0], [1, 1]]),
        (("a", "\n"), "a\na", [[0, 1, 0]]),
        (("a", "b"), "", [[]]),
    ],
)
def test_tokenizer_letters_split_anywhere(symbols: tuple[str, ...], text: str, meant: list[list[int]]) -> None:
    encoded = text.encode()
    for cut in range(len(encoded) + 1):
        assert read(encoded, symbols, [cut]) == meant
    assert read(encoded, symbols, list(range(1, len(encoded)))) == meant


@pytest.mark.parametrize(
    ("symbols", "text", "sentence"),
    [
        (
            ("go", "stop"),
            "go stop\n\ngo go stpo go",
            r"unknown symbol 'stpo' on line 3, word 3\. Did you mean 'stop'\?",
        ),
        (("a", "b"), "ab\nabxa", r"unknown symbol 'x' on line 2, letter 3\. This machine reads a, b\."),
        (("ä", "b"), "äé", "unknown symbol 'é' on line 1, letter 2"),
        (("go", "stop"), "go \xff\xfe", "unknown symbol 'ÿþ' on line 1, word 2"),
        (("go", "stop"), "go " + "x" * 200, r"unknown symbol 'x{57}\.\.\.' on line 1, word 2"),
    ],
)
def test_tokenizer_names_unknown_symbols_with_their_position(
    symbols: tuple[str, ...], text: str, sentence: str
) -> None:
    encoded = text.encode()
    for cuts in ([], [len(encoded) // 2], list(range(1, len(encoded)))):
        with pytest.raises(InvalidWord, match=sentence):
            read(encoded, symbols, cuts)


def test_tokenizer_refuses_bytes_that_are_not_text() -> None:
    with pytest.raises(InvalidWord, match="byte 0xff on line 1, letter 3, is not UTF-8 text"):
        read(b"ab\xffa", ("a", "b"), [])
    with pytest.raises(InvalidWord, match=r"unknown symbol '\\\\xff' on line 1, word 2"):
        read(b"go \xff go", ("go", "stop"), [])


def test_tokenizer_returns_symbols_before_an_unknown_one() -> None:
    tokenizer = Tokenizer(Alphabet(("go", "stop")))
    piece = tokenizer.feed(b"go\nstop go what go\n")
    assert piece.numbers.tolist() == [0, 1, 0]
    assert piece.breaks.tolist() == [1]
    for call in (tokenizer.refuse_unknown, tokenizer.finish, lambda: tokenizer.feed(b"go\n")):
        with pytest.raises(InvalidWord, match="unknown symbol 'what' on line 2, word 3"):
            call()


def test_tokenizer_skips_unknown_symbols() -> None:
    text = b"go what go\nwhat\nstop " + b"x" * 1000 + b" go"
    for cut in range(0, len(text), 7):
        assert read(text, ("go", "stop"), [cut], unknown="skip") == [[0, 0], [], [1, 0]]
    assert read(b"a?b\n?a", ("a", "b"), [2], unknown="skip") == [[0, 1], [0]]
    tokenizer = Tokenizer(Alphabet(("a", "b")), unknown="skip")
    tokenizer.feed(b"a??b?")
    assert tokenizer.skipped == 3


def test_tokenizer_truncates_endless_words() -> None:
    tokenizer = Tokenizer(Alphabet(("go", "stop")), unknown="skip")
    for _ in range(100):
        tokenizer.feed(b"x" * 10_000)
    assert len(tokenizer._held) < 20_000
    assert tokenizer.feed(b" go ").numbers.tolist() == [0]
    assert tokenizer.skipped == 1


def test_tokenizer_normalizes_english() -> None:
    alphabet = Alphabet(("ann", "has", "it", ".", "?", "Bob"))
    for size in (1, 3, 1000):
        tokenizer = Tokenizer(alphabet)
        text = b"Ann has it. Bob HAS it?\nit has Ann...\n. ann?"
        pieces = [tokenizer.feed(text[i : i + size]) for i in range(0, len(text), size)] + [tokenizer.finish()]
        numbers = np.concatenate([piece.numbers for piece in pieces]).tolist()
        assert numbers == [0, 1, 2, 3, 5, 1, 2, 4, 2, 1, 0, 3, 3, 3, 3, 0, 4]
        tokenizer.refuse_unknown()
    tokenizer = Tokenizer(alphabet)
    assert tokenizer.feed(b"Ann has itt. \n").numbers.tolist() == [0, 1]
    with pytest.raises(InvalidWord, match=r"unknown symbol 'itt.' on line 1, word 3\. Did you mean 'it'"):
        tokenizer.refuse_unknown()


def test_tokenizer_punctuation_and_symbols_of_several_words() -> None:
    assert Tokenizer(Alphabet(("go", "."))).feed(b"... go ").numbers.tolist() == [1, 1, 1, 0]
    tokenizer = Tokenizer(Alphabet(("(0 1)", "(1 2)")), unknown="skip")
    assert np.concatenate([tokenizer.feed(b"(0 1) (0 1). (1 2) ").numbers, tokenizer.finish().numbers]).tolist()[0] == 0


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("symbols", [("a", "b"), ("go", "stop")])
def test_tokenizer_skips_a_byte_order_mark(symbols: tuple[str, str], size: int) -> None:
    text = "\ufeff".encode() + " ".join(symbols).encode()
    tokenizer = Tokenizer(Alphabet(symbols))
    pieces = [tokenizer.feed(text[at : at + size]) for at in range(0, len(text), size)] + [tokenizer.finish()]
    tokenizer.refuse_unknown()
    assert [number for piece in pieces for number in piece.numbers.tolist()] == [0, 1]


def test_tokenizer_keeps_a_mark_that_is_a_symbol() -> None:
    tokenizer = Tokenizer(Alphabet(("\ufeff", "a")))
    assert tokenizer.feed("\ufeffa".encode()).numbers.tolist() == [0, 1]


def test_tokenizer_returns_what_precedes_a_bad_byte() -> None:
    tokenizer = Tokenizer(Alphabet(("a", "b")))
    assert tokenizer.feed(b"ab\nba\xffab").numbers.tolist() == [0, 1, 1, 0]
    with pytest.raises(InvalidWord, match="the byte 0xff on line 2, letter 3, is not UTF-8 text"):
        tokenizer.refuse_unknown()


def test_tokenizer_of_long_symbols_looks_at_few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of words that do not continue a long symbol costs no more than its own length."""
    from exactstate.runtime import alphabet, tokenizer

    long = " ".join(["w"] + ["x"] * 200)
    seen = 0

    class Counted(dict):  # type: ignore[type-arg]
        def get(self, *key: object) -> object:
            nonlocal seen
            seen += 1
            return super().get(*key)

    names = Alphabet((long, "w", "x"))
    object.__setattr__(names, "words", Counted(names.words))
    assert alphabet.longest is tokenizer.longest
    words = Tokenizer(names)
    numbers = [*words.feed(b"w " * 3000).numbers, *words.feed(b"x " * 3000).numbers, *words.finish().numbers]
    assert len(numbers) == 6000 - 200
    assert seen < 20_000
    with pytest.raises(InvalidWord, match="a symbol of 3,000 words cannot be read from text, where 256 is the most"):
        Tokenizer(Alphabet((" ".join(["w"] * 3000), "x"))).feed(b"w x ")
