"""Text cut into chunks anywhere gives the same symbols and lines; unknown symbols are named with their place."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from detent.errors import InvalidWord
from detent.runtime.alphabet import Alphabet
from detent.runtime.tokenizer import TextReader, Unknown


def read(text: bytes, symbols: tuple[str, ...], cuts: list[int], unknown: Unknown = "error") -> list[list[int]]:
    """The symbols of every line, the last one included, from text that comes in chunks."""
    reader = TextReader(Alphabet(symbols), unknown=unknown)
    lines: list[list[int]] = [[]]
    edges = [0, *cuts, len(text)]
    pieces = [reader.feed(text[begin:end]) for begin, end in pairwise(edges)] + [reader.finish()]
    reader.refuse_unknown()
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


def test_words_cut_anywhere() -> None:
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
def test_letters_cut_anywhere(symbols: tuple[str, ...], text: str, meant: list[list[int]]) -> None:
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
def test_unknown_symbols_are_named_with_their_place(symbols: tuple[str, ...], text: str, sentence: str) -> None:
    encoded = text.encode()
    for cuts in ([], [len(encoded) // 2], list(range(1, len(encoded)))):
        with pytest.raises(InvalidWord, match=sentence):
            read(encoded, symbols, cuts)


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(InvalidWord, match="byte 0xff on line 1 or after is not UTF-8 text"):
        read(b"ab\xffa", ("a", "b"), [])
    with pytest.raises(InvalidWord, match=r"unknown symbol '\\\\xff' on line 1, word 2"):
        read(b"go \xff go", ("go", "stop"), [])


def test_what_stands_before_an_unknown_symbol_is_read() -> None:
    reader = TextReader(Alphabet(("go", "stop")))
    piece = reader.feed(b"go\nstop go what go\n")
    assert piece.numbers.tolist() == [0, 1, 0]
    assert piece.breaks.tolist() == [1]
    for call in (reader.refuse_unknown, reader.finish, lambda: reader.feed(b"go\n")):
        with pytest.raises(InvalidWord, match="unknown symbol 'what' on line 2, word 3"):
            call()


def test_unknown_symbols_can_be_passed_over() -> None:
    text = b"go what go\nwhat\nstop " + b"x" * 1000 + b" go"
    for cut in range(0, len(text), 7):
        assert read(text, ("go", "stop"), [cut], unknown="skip") == [[0, 0], [], [1, 0]]
    assert read(b"a?b\n?a", ("a", "b"), [2], unknown="skip") == [[0, 1], [0]]
    reader = TextReader(Alphabet(("a", "b")), unknown="skip")
    reader.feed(b"a??b?")
    assert reader.skipped == 3


def test_a_word_without_end_is_not_kept() -> None:
    reader = TextReader(Alphabet(("go", "stop")), unknown="skip")
    for _ in range(100):
        reader.feed(b"x" * 10_000)
    assert len(reader._held) < 20_000
    assert reader.feed(b" go ").numbers.tolist() == [0]
    assert reader.skipped == 1


def test_english_as_people_write_it() -> None:
    alphabet = Alphabet(("ann", "has", "it", ".", "?", "Bob"))
    for size in (1, 3, 1000):
        reader = TextReader(alphabet)
        text = b"Ann has it. Bob HAS it?\nit has Ann...\n. ann?"
        pieces = [reader.feed(text[i : i + size]) for i in range(0, len(text), size)] + [reader.finish()]
        numbers = np.concatenate([piece.numbers for piece in pieces]).tolist()
        assert numbers == [0, 1, 2, 3, 5, 1, 2, 4, 2, 1, 0, 3, 3, 3, 3, 0, 4]
        reader.refuse_unknown()
    reader = TextReader(alphabet)
    assert reader.feed(b"Ann has itt. \n").numbers.tolist() == [0, 1]
    with pytest.raises(InvalidWord, match=r"unknown symbol 'itt.' on line 1, word 3\. Did you mean 'it'"):
        reader.refuse_unknown()


def test_marks_alone_are_read_and_symbols_of_several_words_stay_as_they_are() -> None:
    assert TextReader(Alphabet(("go", "."))).feed(b"... go ").numbers.tolist() == [1, 1, 1, 0]
    reader = TextReader(Alphabet(("(0 1)", "(1 2)")), unknown="skip")
    assert np.concatenate([reader.feed(b"(0 1) (0 1). (1 2) ").numbers, reader.finish().numbers]).tolist()[0] == 0
