"""Words come as arrays, lists, strings and bytes, and mean the same; what is no symbol is named with its place."""

from __future__ import annotations

import numpy as np
import pytest

from exactstate.automata import Moore, cyclic, symmetric
from exactstate.errors import InvalidWord
from exactstate.runtime import Machine
from exactstate.runtime.alphabet import Alphabet


def reading(*symbols: str) -> Machine:
    """A machine that says which symbol came last."""
    A = len(symbols)
    tables = np.repeat(np.arange(1, A + 1)[:, None], A + 1, axis=1)
    return Machine.of(
        Moore(symbols=symbols, tables=tables, outputs=("nothing", *symbols), readout=np.arange(A + 1))
    )  # fmt: skip


@pytest.mark.parametrize(
    "word",
    ["abcab", b"abcab", bytearray(b"abcab"), memoryview(b"abcab"), list("abcab"), tuple("abcab"), [0, 1, 2, 0, 1],
     np.array([0, 1, 2, 0, 1]), np.array([0, 1, 2, 0, 1], np.uint8), np.array([0, 1, 2, 0, 1], ">i4"),
     np.array([0, 9, 1, 9, 2, 9, 0, 9, 1, 9])[::2]],
    ids=lambda word: type(word).__name__ + str(getattr(word, "dtype", "")),
)  # fmt: skip
@pytest.mark.parametrize("strategy", ["auto", "plain", "numpy"])
def test_encode_one_word_in_many_forms(word: object, strategy: str) -> None:
    machine = reading("a", "b", "c")
    if strategy not in (*machine.strategies, "auto"):
        pytest.skip("no kernels")
    assert machine.output_ids(word, strategy=strategy).tolist() == [1, 2, 3, 1, 2]


def test_encode_letters_beyond_ascii() -> None:
    machine = reading("ä", "λ", "🙂")
    for word in ("λä🙂λ", "λä🙂λ".encode(), ["λ", "ä", "🙂", "λ"]):
        assert machine.outputs(word) == ["λ", "ä", "🙂", "λ"]
    with pytest.raises(InvalidWord, match=r"unknown symbol 'e' at position 1\. This machine reads ä, λ, 🙂\."):
        machine.run("λe")
    with pytest.raises(InvalidWord, match="the byte 0xff at position 2 is not UTF-8 text"):
        machine.run("λ".encode() + b"\xff")


def test_encode_splits_words_at_white_space() -> None:
    machine = reading("alice", "bob", ".")
    for word in ("bob  alice\n.\tbob", b"bob alice . bob", ["bob", "alice", ".", "bob"]):
        assert machine.outputs(word) == ["bob", "alice", ".", "bob"]
    with pytest.raises(InvalidWord, match=r"unknown symbol 'alicia' at position 2\. Did you mean 'alice'\?"):
        machine.run("bob . alicia bob")


def test_encode_symbols_of_several_words() -> None:
    machine = Machine.of(symmetric(3))
    assert machine.symbols == ("(0 1)", "(1 2)")
    assert machine.run("(0 1) (1 2)\n(0 1)") == machine.run([0, 1, 0])
    longest = reading("a", "a b", "a b c", "c")
    assert longest.outputs("a a b a b c c a b a") == ["a", "a b", "a b c", "c", "a b", "a"]
    with pytest.raises(InvalidWord, match=r"unknown symbol '\(0' at position 1"):
        machine.run("(0 1) (0 2)")


def test_encode_the_empty_word() -> None:
    machine = reading("a", "b")
    for word in ("", b"", [], (), np.zeros(0, np.int64), np.zeros(0)):
        assert machine.run(word) == 0
        assert machine.output_ids(word).shape == (0,)
    assert reading("alice", "bob").run("  \n ") == 0


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("abx", r"unknown symbol 'x' at position 2\. This machine reads a, b\."),
        (b"ab\nb", r"unknown symbol '\\n' at position 2"),
        ("aß".encode(), "unknown symbol 'ß' at position 1"),
        (b"a\xff", "unknown symbol '\ufffd' at position 1"),
        (["a", "x"], "word 1: unknown symbol 'x' at position 0"),
        (["a", 0], "symbol 0 at position 1 is out of range"),
        ([0, 2], r"symbol 2 at position 1 is out of range: this machine has 2 symbols \(0..1\)"),
        ([0, -1], "symbol -1 at position 1"),
        ([0.5], "a word holds symbol names or integers; got float64"),
        ([True], "a word holds symbol names or integers; got true or false"),
        (np.array([True]), "got bool"),
        (np.zeros((2, 2, 2), int), r"words are an array of one dimension \(L\) or two \(B L\); got 3"),
        (np.array(3), "words are an array of one dimension"),
    ],
)
def test_encode_refuses_what_is_not_a_word(word: object, sentence: str) -> None:
    with pytest.raises(InvalidWord, match=sentence):
        reading("a", "b").run(word)


def test_encode_abbreviates_long_names_in_errors() -> None:
    error = Alphabet(("a",)).unknown("x" * 1000, 0)
    assert len(str(error)) < 200


def test_run_words_of_batches() -> None:
    machine = Machine.of(cyclic(5))
    rng = np.random.default_rng(0)
    for B, L in ((1, 7), (3, 0), (0, 4), (9, 100), (8, 5000), (2, 9000)):
        batch = rng.integers(0, 5, (B, L)).astype(np.uint8)
        assert np.array_equal(machine.run(batch), batch.sum(1, dtype=int) % 5)
        assert np.array_equal(machine.output_ids(batch), np.cumsum(batch, axis=1) % 5)
        assert np.array_equal(machine.trajectory(batch, 3), (3 + np.cumsum(batch, axis=1)) % 5)
    with pytest.raises(InvalidWord, match=r"position 2 .*is out of range"):
        machine.run(np.array([[0, 1, 5]] * 20))


def test_run_words_of_lists() -> None:
    machine = reading("a", "b")
    assert machine.run(["ab", "ba", "aa"]).tolist() == [2, 1, 1]
    assert machine.run([[0, 1], [1, 0]]).tolist() == [2, 1]
    assert machine.run([b"ab", b"b", b""]).tolist() == [2, 2, 0]
    assert [said.tolist() for said in machine.output_ids(["abb", "", "b"])] == [[1, 2, 2], [], [2]]
    assert machine.run(["a", "b"]) == 2  # names all through: one word
    assert reading("alice", "bob").run(["alice bob", "bob bob alice"]).tolist() == [2, 1]
    with pytest.raises(InvalidWord, match="unknown symbol 'c'"):
        machine.run(["ab", "ac"])
