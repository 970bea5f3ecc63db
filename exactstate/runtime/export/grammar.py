"""The language of a machine as a right-linear grammar, for engines that constrain what a language model writes.

`ebnf` is read by xgrammar and llama.cpp (GBNF), `lark` by llguidance and Lark. One rule for every state from which an
accepted word is left; a word is its symbols with the separator between them:

    root ::= "open" s1
    s1 ::= "" | " " "read" s1 | " " "close" s2

`read_grammar` reads such a grammar back, and `verified_grammar` proves that it has the language of the machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from exactstate.automata import Mealy, Moore, distinguishing_word, format_word, minimize
from exactstate.automata.io.common import DFA_OUTPUTS
from exactstate.errors import BrokenFile, InvalidConfig, InvalidMachine

Dialect = Literal["ebnf", "lark"]
DIALECTS: dict[str, Dialect] = {".ebnf": "ebnf", ".gbnf": "ebnf", ".lark": "lark"}
"""Dialects by the ending of a file."""
_SIGNS = {"ebnf": ("root", " ::= ", '""', "#"), "lark": ("start", ": ", '""', "//")}


def acceptor(machine: Moore | Mealy, accept: Sequence[str] | None = None) -> Moore:
    """The minimal DFA of the words after which the output is one of `accept`; by default that of a DFA.

    The empty word is accepted by a Moore machine only.
    """
    if accept is None:
        if not isinstance(machine, Moore) or set(machine.outputs) != set(DFA_OUTPUTS):
            raise InvalidConfig(
                "a grammar has the words that a DFA accepts; say which outputs of this machine end a word: --accept "
                f"{','.join(machine.outputs[:3])}."
            )
        accept = ("accept",)
    unknown = [name for name in accept if name not in machine.outputs]
    if unknown:
        raise InvalidConfig(f"the machine has no output {unknown[0]!r}; it has {', '.join(machine.outputs[:12])}.")
    chosen = np.isin(np.arange(len(machine.outputs)), [machine.outputs.index(name) for name in accept]).astype(int)
    if isinstance(machine, Moore):
        tables, readout, start = machine.tables, chosen[machine.readout], machine.start
    else:  # states n .. 2n-1 are reached by accepted symbols
        n = machine.n_states
        half = machine.tables.astype(np.int64) + n * chosen[machine.readout]
        tables, readout, start = np.concatenate([half, half], 1), np.arange(2 * n) // n, machine.start
    return minimize(Moore(symbols=machine.symbols, tables=tables, start=start, outputs=DFA_OUTPUTS, readout=readout))


def to_grammar(dfa: Moore, dialect: Dialect = "ebnf", separator: str | None = None) -> str:
    """The words that a DFA accepts, as a grammar; see `separator_of`."""
    between = separator_of(dfa, separator)
    root, sign, empty, comment = _SIGNS[dialect]
    live = _live(dfa)
    if dfa.start not in live:
        raise InvalidMachine("the machine accepts no word, and no grammar says that.")

    def rule(name: str, state: int, before: str) -> str:
        ways = [empty] if dfa.readout[state] == dfa.outputs.index("accept") else []
        for a, symbol in enumerate(dfa.symbols):
            to = int(dfa.tables[a, state])
            if to in live:
                ways.append(f"{before}{_quoted(symbol)} s{to}")
        return f"{name}{sign}{' | '.join(ways)}\n"

    gap = f"{_quoted(between)} " if between else ""
    words = f"symbols are separated by {_quoted(between)}" if between else "symbols follow each other"
    head = f"{comment} {len(live)} states, {dfa.n_symbols} symbols; {words}. Written by exactstate.\n"
    reached = {int(dfa.tables[a, q]) for q in live for a in range(dfa.n_symbols)} & live
    return head + rule(root, dfa.start, "") + "".join(rule(f"s{q}", q, gap) for q in sorted(reached))


def separator_of(dfa: Moore, separator: str | None = None) -> str:
    """What stands between symbols: by default nothing where all are single letters, a space otherwise.

    Refused where a text could be cut into symbols in two ways.
    """
    by_letter = all(len(name) == 1 for name in dfa.symbols)
    between = ("" if by_letter else " ") if separator is None else separator
    if "" in dfa.symbols:
        raise InvalidMachine("a symbol with an empty name leaves no trace in a text; rename it.")
    if between:
        bad = [name for name in dfa.symbols if between[0] in name]
        if bad:
            raise InvalidConfig(
                f"the symbol {bad[0]!r:.60} contains {between[0]!r}, with which the separator begins, so that a text "
                'could be read in two ways; choose another one, such as --separator "\\n".'
            )
    else:
        names = sorted(dfa.symbols)
        clash = next((pair for pair in pairwise(names) if pair[1].startswith(pair[0])), None)
        if clash:
            raise InvalidConfig(f"{clash[0]!r:.60} begins {clash[1]!r:.60}; choose a separator.")
    return between


def verified_grammar(
    machine: Moore | Mealy, dialect: Dialect, *, accept: Sequence[str] | None = None, separator: str | None = None
) -> tuple[str, Moore]:
    """The grammar, and the DFA whose words it has: read back and proved equivalent, on words of every length."""
    dfa = acceptor(machine, accept)
    between = separator_of(dfa, separator)
    text = to_grammar(dfa, dialect, between)
    word = distinguishing_word(dfa, read_grammar(text, separator=between, symbols=dfa.symbols))
    if word is not None:
        raise InvalidMachine(f"the grammar reads back as another language: they differ on {format_word(word)}.")
    return text, dfa


_TOKEN = re.compile(
    r"""\s*(?: (?:\#|//)[^\n]* | (?P<string>"(?:[^"\\\n]|\\.)*") | (?P<rule>[A-Za-z][\w-]*)\s*(?:::=|:)
    | (?P<name>[A-Za-z][\w-]*) | (?P<bar>\|) | (?P<sign>\S))""",
    re.VERBOSE,
)


def read_grammar(text: str, *, separator: str, symbols: Sequence[str] | None = None, source: str = "grammar") -> Moore:
    """The minimal DFA of a right-linear grammar in either dialect, over `symbols` or those it names.

    A right side is nothing, or the separator, a symbol and a rule; what else these languages have is refused by name.
    """
    rules: dict[str, list[list[tuple[str, str]]]] = {}
    ways: list[list[tuple[str, str]]] | None = None
    for kind, value, line in _tokens(text):
        if kind == "rule":
            if value in rules:
                raise BrokenFile(source, f"there are two rules {value!r}.", line)
            ways = rules[value] = [[]]
        elif kind == "sign" or ways is None:
            raise BrokenFile(source, f"{value!r} is not read; a rule is strings and rules between bars.", line)
        elif kind == "bar":
            ways.append([])
        else:
            ways[-1].append((kind, value))
    root = next((name for name in ("root", "start") if name in rules), None)
    if root is None:
        raise BrokenFile(source, "there is no rule root (EBNF) or start (Lark).")
    names, final = list(rules), set()
    edges: dict[tuple[str, str], str] = {}
    for name in names:
        for way in rules[name]:
            strings = [value for kind, value in way if kind == "string" and value]
            after = [value for kind, value in way if kind == "name"]
            if not strings and not after:
                final.add(name)
                continue
            gap = [separator] if separator and name != root else []
            right = [kind for kind, _ in way] == ["string"] * len(strings) + ["name"]
            if not right or strings[:-1] != gap or after[0] not in rules:
                raise BrokenFile(source, f"a way of the rule {name!r} is not the separator, one symbol and a rule.")
            if edges.setdefault((name, strings[-1]), after[0]) != after[0]:
                raise BrokenFile(source, f"the rule {name!r} has two ways with {strings[-1]!r}.")
    read = list(dict.fromkeys(symbol for _, symbol in edges))
    alphabet = tuple(symbols) if symbols is not None else tuple(read)
    strange = [name for name in read if name not in alphabet]
    if strange or not alphabet:
        raise BrokenFile(source, f"the symbol {strange[0]!r} is not one of these." if strange else "it has no symbol.")
    number = {name: q for q, name in enumerate(names)}
    sink = len(names)
    tables = [[number[edges[q, a]] if (q, a) in edges else sink for q in names] + [sink] for a in alphabet]
    readout = np.array([int(name in final) for name in names] + [0])
    return minimize(
        Moore(symbols=alphabet, tables=np.array(tables), start=number[root], outputs=DFA_OUTPUTS, readout=readout)
    )


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """(string, rule, name, bar or sign; what it says; its line), without comments."""
    for found in _TOKEN.finditer(text):
        kind, line = found.lastgroup, text.count("\n", 0, found.end()) + 1
        if kind is None:
            continue
        value = found[kind]
        if kind == "string":
            try:
                value = json.loads(value)
            except ValueError:
                kind = "sign"
        yield kind, value, line


def _live(dfa: Moore) -> set[int]:
    """The states from which a word leads to acceptance."""
    live = dfa.readout == dfa.outputs.index("accept")
    while True:
        more = live | live[dfa.tables].any(axis=0)
        if np.array_equal(more, live):
            return set(np.flatnonzero(live).tolist())
        live = more


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _quoted(text: str) -> str:
    """A string that JSON, GBNF and Lark read alike."""
    if any(0xD800 <= ord(letter) < 0xE000 for letter in text):
        raise InvalidMachine("a name holds half a surrogate pair, which no text file can hold; rename it.")
    letters = (_ESCAPES.get(c) or (c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}") for c in text)
    return f'"{"".join(letters)}"'
