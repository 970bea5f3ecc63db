"""Grammars against the machines they come from: read back, and as xgrammar and llguidance understand them."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from exactstate.automata import Mealy, Moore, canonical, distinguishing_word, tomita
from exactstate.automata.io.common import DFA_OUTPUTS
from exactstate.errors import BrokenFile, InvalidConfig, InvalidMachine
from exactstate.runtime.export.grammar import acceptor, read_grammar, separator_of, to_grammar, verified_grammar

PREFIXES = ("get", "get_all", "close")
UGLY = ('{"name": "a b"}', '{"na"}', 'é\n\\"', "\x7f\x01#", "// |")


def random_dfa(symbols: tuple[str, ...], n: int, seed: int) -> Moore:
    draw = np.random.default_rng(seed)
    tables = draw.integers(0, n, (len(symbols), n))
    readout = draw.integers(0, 2, n)
    readout[tables[0, 0]] = 1
    return Moore(symbols=symbols, tables=tables, outputs=DFA_OUTPUTS, readout=readout)


CASES = [
    *((tomita(number), None) for number in range(1, 8)),
    *((random_dfa(PREFIXES, n, n), None) for n in range(1, 7)),
    *((random_dfa(UGLY, n, n), ";") for n in range(1, 7)),
]


@pytest.mark.parametrize("dialect", ["ebnf", "lark"])
@pytest.mark.parametrize(("dfa", "separator"), CASES)
def test_verified_grammar_reads_back_as_the_dfa(dfa: Moore, separator: str | None, dialect) -> None:
    text, small = verified_grammar(dfa, dialect, separator=separator)
    back = read_grammar(text, separator=separator_of(dfa, separator), symbols=dfa.symbols)
    assert distinguishing_word(small, back) is None
    assert canonical(back) == canonical(acceptor(dfa))
    assert all(line.isprintable() for line in text.splitlines())


def test_to_grammar_has_one_rule_for_every_live_state() -> None:
    text = to_grammar(acceptor(random_dfa(("open", "close"), 1, 0)), "ebnf")
    assert text.splitlines()[1:] == [
        'root ::= "" | "open" s0 | "close" s0',
        's0 ::= "" | " " "open" s0 | " " "close" s0',
    ]


def test_read_grammar_sees_a_changed_rule() -> None:
    dfa = acceptor(tomita(4))
    text = to_grammar(dfa, "ebnf")
    changed = text.replace('"" | "0" s1', '"0" s1', 1)
    assert changed != text
    assert distinguishing_word(dfa, read_grammar(changed, separator="", symbols=dfa.symbols)) is not None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('root ::= "a" s1* \ns1 ::= ""', "'*' is not read"),
        ("root ::= [a-z] s1", "'[' is not read"),
        ('root ::= "a" s1', "not the separator, one symbol and a rule"),
        ('s0 ::= "a" s0', "there is no rule root"),
        ('root ::= "a" s0 | "a" s1\ns0 ::= ""\ns1 ::= ""', "two ways with 'a'"),
        ('root ::= ""\nroot ::= ""', "two rules 'root'"),
        ('root ::= s0 "a"\ns0 ::= ""', "not the separator"),
        ('root ::= "a" s0\ns0 ::= "a" s0 | ""', "not the separator"),
        ('root ::= ""', "it has no symbol"),
    ],
)
def test_read_grammar_refuses_by_name(text: str, sentence: str) -> None:
    with pytest.raises(BrokenFile, match=re.escape(sentence)):
        read_grammar(text, separator=" ")


def test_grammar_of_a_mealy_machine_has_the_words_that_end_with_an_output() -> None:
    mealy = Mealy(symbols=("a", "b"), tables=[[0], [0]], outputs=("ok", "bad"), readout=[[0], [1]])
    dfa = verified_grammar(mealy, "lark", accept=["ok"])[1]
    accepted = {word: dfa.readout[dfa.run(list(word))] for word in ("", "a", "b", "ba", "ab")}
    assert accepted == {"": 0, "a": 1, "b": 0, "ba": 1, "ab": 0}


def test_grammar_refuses_what_text_cannot_tell_apart() -> None:
    with pytest.raises(InvalidConfig, match="could be read in two ways"):
        separator_of(random_dfa(("a b", "c"), 2, 0))
    with pytest.raises(InvalidConfig, match="'a' begins 'ab'"):
        separator_of(random_dfa(("a", "ab"), 2, 0), "")
    with pytest.raises(InvalidMachine, match="empty name"):
        separator_of(random_dfa(("", "ab"), 2, 0))
    with pytest.raises(InvalidMachine, match="accepts no word"):
        to_grammar(Moore(symbols=("a",), tables=[[0]], outputs=DFA_OUTPUTS, readout=[0]))
    with pytest.raises(InvalidConfig, match="say which outputs"):
        acceptor(Moore(symbols=("a",), tables=[[0]], outputs=("x", "y"), readout=[0]))
    with pytest.raises(InvalidConfig, match="has no output 'z'"):
        acceptor(Moore(symbols=("a",), tables=[[0]], outputs=("x", "y"), readout=[0]), ["z"])


def with_xgrammar(text: str) -> Callable[[bytes], bool]:
    xgrammar = pytest.importorskip("xgrammar", reason="no wheel of xgrammar for this platform")
    vocabulary = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    tokens = xgrammar.TokenizerInfo(vocabulary, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256])
    compiled = xgrammar.GrammarCompiler(tokens).compile_grammar(xgrammar.Grammar.from_ebnf(text))

    def accepts(word: bytes) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return all(matcher.accept_token(byte) for byte in word) and matcher.accept_token(256)

    return accepts


def with_llguidance(text: str) -> Callable[[bytes], bool]:
    llguidance = pytest.importorskip("llguidance", reason="no wheel of llguidance for this platform")
    tokenizer = llguidance.LLTokenizer("byte")

    def accepts(word: bytes) -> bool:
        matcher = llguidance.LLMatcher(tokenizer, text)
        assert not matcher.is_error(), matcher.get_error()
        tokens = tokenizer.tokenize_bytes(word)
        return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()

    return accepts


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("engine", "dialect"), [(with_xgrammar, "ebnf"), (with_llguidance, "lark")])
@pytest.mark.parametrize("case", [3, 9, 16])
def test_engines_accept_the_words_of_the_machine(case: int, engine, dialect) -> None:
    dfa, separator = CASES[case]
    text, small = verified_grammar(dfa, dialect, separator=separator)
    accepts, between = engine(text), separator_of(dfa, separator)
    draw = np.random.default_rng(1)
    wanted = set()
    for _ in range(60):
        word = [small.symbols[a] for a in draw.integers(0, small.n_symbols, draw.integers(0, 7))]
        accepted = small.readout[small.run(word)] == 1
        assert accepts(between.join(word).encode()) == accepted
        wanted.add(bool(accepted))
    assert wanted == {True, False}
