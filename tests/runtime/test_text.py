"""The compiled dictionary and writer: what the plain Python of the tokenizer and the filter gives, piece by piece."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate import native
from exactstate.automata import Moore
from exactstate.runtime import Machine
from exactstate.runtime.alphabet import Alphabet
from exactstate.runtime.filter import Filter, NameWriter
from exactstate.runtime.tokenizer import Tokenizer, WordDictionary

ALPHABETS = (
    ("go", "stop", "go on", "go on and on", "(0 1)", "(1 2)", "on"),
    ("a" * 300, "b", "b b b b", "c  c", "", "x\ty"),
    tuple(f"w{i}" for i in range(500)) + tuple(f"w{i} w{i + 1}" for i in range(0, 500, 7)),
)
BLANKS = (" ", "  ", "\n", "\t", " \n ", "\r\n", "\n\n", "\x0b")


def texts(symbols: tuple[str, ...], rng: np.random.Generator, count: int) -> list[bytes]:
    words = [word for name in symbols for word in name.split()] + ["unknown", "GO", "on,"]
    made = []
    for _ in range(count):
        size = int(rng.integers(0, 40))
        parts = [words[rng.integers(0, len(words) - 3)] + BLANKS[rng.integers(0, 8)] for _ in range(size)]
        if rng.random() < 0.3:
            parts.insert(int(rng.integers(0, size + 1)), words[-int(rng.integers(1, 4))] + " ")
        made.append("".join(parts).encode())
    return made


def tokens(tokenizer: Tokenizer, pieces: list[bytes]) -> tuple[list[int], list[int], int, int, str]:
    numbers: list[int] = []
    breaks: list[int] = []
    error = ""
    try:
        for piece in (*pieces, None):
            part = tokenizer.finish() if piece is None else tokenizer.feed(piece)
            breaks += (part.breaks + len(numbers)).tolist()
            numbers += part.numbers.tolist()
            tokenizer.refuse_unknown()
    except ValueError as reason:
        error = str(reason)
    return numbers, breaks, tokenizer.line, tokenizer.in_line, error


@pytest.mark.parametrize("symbols", ALPHABETS, ids=("phrases", "odd", "many"))
@pytest.mark.parametrize("unknown", ["error", "skip"])
def test_dictionary_agrees_with_plain_python(symbols: tuple[str, ...], unknown: str) -> None:
    rng = np.random.default_rng(1)
    for text in texts(symbols, rng, 150):
        plain = Tokenizer(Alphabet(symbols), unknown=unknown)  # type: ignore[arg-type]
        plain._dictionary = None
        want = tokens(plain, [text])
        for size in (len(text) + 1, 1, 7):
            fast = Tokenizer(Alphabet(symbols), unknown=unknown)  # type: ignore[arg-type]
            assert fast._dictionary is not None
            assert tokens(fast, [text[at : at + size] for at in range(0, len(text), size)]) == want


def test_tokenize_leaves_what_is_not_decided() -> None:
    dictionary = WordDictionary(Alphabet(("go", "go on", "stop")))
    numbers, breaks, consumed, unknown = dictionary.tokenize(b"stop go  ", final=False)
    assert (numbers.tolist(), breaks.tolist(), consumed, unknown) == ([2], [], 5, False)
    numbers, _, consumed, unknown = dictionary.tokenize(b"stop go  ", final=True)
    assert (numbers.tolist(), consumed, unknown) == ([2, 0], 9, False)
    numbers, breaks, consumed, unknown = dictionary.tokenize(b"go\non nothing", final=False)
    assert (numbers.tolist(), breaks.tolist(), consumed, unknown) == ([0], [1], 3, True)
    assert dictionary.tokenize(b"", final=True)[2] == 0


def test_name_writer_writes_lines() -> None:
    writer = NameWriter([b"x", b"", b"long"], b", ")
    assert writer.write(np.array([0, 2, 1, 1, 0]), np.array([0, 2, 4]), begun=False) == (b"x, long\nx", True)
    assert writer.write(np.array([2]), np.array([1]), begun=True) == (b", long\n", False)
    assert writer.write(np.array([], int), np.array([], int), begun=True) == (b"", True)


@pytest.mark.parametrize("letters", [True, False])
@pytest.mark.parametrize("each_line", [True, False])
def test_filter_writes_the_same_without_kernels(
    letters: bool, each_line: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    symbols = ("a", "b", "\u00e9", " ") if letters else ("go", "go on", "stop", "(")
    machine = Machine.of(Moore(
        symbols=symbols, tables=rng.integers(0, 3, (4, 3)), states=("p", "q", "r"), outputs=("0", "11", ""),
        readout=[0, 1, 2],
    ))  # fmt: skip
    words = [*symbols, "\n", "\n\n", "GO"]
    for _ in range(60):
        between = "" if letters else " "
        text = between.join(words[i] for i in rng.integers(0, len(words) - 1, 30)).encode()
        fast = Filter(machine=machine, each_line=each_line)
        plain = Filter(machine=machine, each_line=each_line)
        plain._writer, plain.tokenizer._dictionary = None, None
        pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
        want = plain.feed(text) + plain.finish()
        assert b"".join(map(fast.feed, pieces)) + fast.finish() == want
        assert fast.state == plain.state


def test_filter_escapes_names_for_a_terminal() -> None:
    machine = Machine.of(Moore(symbols=("a",), tables=[[0]], outputs=("\x1b[2J",), readout=[0]))
    assert Filter(machine=machine, escape=True).feed(b"a\n") == b"\\x1b[2J\n"
    assert Filter(machine=machine).feed(b"a\n") == b"\x1b[2J\n"


def test_output_ids_of_a_batch_equal_those_of_single_words() -> None:
    rng = np.random.default_rng(5)
    for states, outputs, dtype in ((7, 5, np.uint8), (300, 400, np.int64), (70_000, 3, np.int32)):
        machine = Machine.of(Moore(
            symbols=tuple("abc"), tables=rng.integers(0, states, (3, states)),
            outputs=tuple(map(str, range(outputs))), readout=rng.integers(0, outputs, states),
        ))  # fmt: skip
        for count, length in ((8, 1), (13, 50), (8, 0), (9, 2100)):
            words = rng.integers(0, 3, (count, length)).astype(dtype)
            got = machine.output_ids(words)
            assert got.shape == (count, length)
            assert all(np.array_equal(row, machine.output_ids(word)) for row, word in zip(got, words, strict=True))
        wrong = np.zeros((9, 4), dtype)
        wrong[2, 1] = 3
        with pytest.raises(ValueError, match="symbol 3 at position 1 of word 2 is out of range"):
            machine.output_ids(wrong)


def test_push_of_single_events_equals_one_long_push() -> None:
    rng = np.random.default_rng(7)
    machine = Machine.of(Moore(
        symbols=("go", "stop", "7"), tables=rng.integers(0, 5, (3, 5)), outputs=("x", "y"), readout=[0, 1, 0, 1, 1]
    ))  # fmt: skip
    word = rng.integers(0, 3, 200)
    whole, by_name, by_number, plain = (machine.stream() for _ in range(4))
    want = whole.push(word)
    plain._events = None
    for one, symbol in zip(want, word.tolist(), strict=True):
        for out in (by_name.push([machine.symbols[symbol]]), by_number.push((symbol,)), plain.push([symbol])):
            assert (out.tolist(), out.dtype, out.shape) == ([one], want.dtype, (1,))
    assert whole.position == by_name.position == by_number.position == plain.position
    kept = by_name.push(["go"])
    kept[0] = 99  # the caller's own array
    assert by_name.push(["go"]).tolist() != [99]
    for wrong in ([3], [-1], ["no"], [True], [1.5]):
        before = by_name.position
        with pytest.raises(ValueError, match=r"symbol|word"):
            by_name.push(wrong)
        assert by_name.position == before


def test_dictionary_needs_kernels() -> None:
    assert native.available()
