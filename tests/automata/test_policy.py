"""Policies against what they say, word by word; proofs and shortest violations; files."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from exactstate.automata import Mealy, Policy, read_policies
from exactstate.automata.policy import END, restricted
from exactstate.errors import BrokenFile, InvalidConfig

SYMBOLS = ("a", "b", "c", END)


def refused(policy: str, word: tuple[str, ...]) -> list[bool]:
    """Which symbols of a word the machine of a policy refuses."""
    machine = Policy.of(policy).machine(SYMBOLS)
    return [machine.outputs[o] == "refused" for o in machine.output_ids(list(word)).tolist()]


def says(policy: str, past: list[str], symbol: str) -> bool:
    """The rules once more, from their sentences: whether a symbol is refused after those that were not."""

    def since(name: str) -> list[str]:
        return past[len(past) - past[::-1].index(name) :] if name in past else past

    match policy:
        case "a before b":
            return symbol == "b" and "a" not in past
        case "a before b, per c":
            return symbol == "b" and "a" not in since("c")
        case "no a after b":
            return symbol == "a" and "b" in past
        case "no a after b until c":
            return symbol == "a" and "b" in since("c")
        case "at most 2 a":
            return symbol == "a" and past.count("a") >= 2
        case "at most 1 a between b":
            return symbol == "a" and since("b").count("a") >= 1
        case "every a then b":
            return symbol == END and "a" in since("b")
    raise AssertionError(policy)


POLICIES = ("a before b", "a before b, per c", "no a after b", "no a after b until c", "at most 2 a",
            "at most 1 a between b", "every a then b")  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
def test_policy_refuses_what_its_sentence_says(policy: str) -> None:
    for word in product(SYMBOLS, repeat=5):
        past: list[str] = []
        wanted = []
        for symbol in word:
            wanted.append(says(policy, past, symbol))
            past += [] if wanted[-1] else [symbol]  # what is refused does not happen
        assert refused(policy, word) == wanted, word


def test_policy_names_match_calls_with_arguments() -> None:
    symbols = ("pay(amount=<100)", "pay(amount=>=100)", "payday", "log.in", END)
    machine = Policy.of("log.* before pay|x").machine(symbols)
    assert [symbols[a] for a in np.flatnonzero(machine.readout[:, 0])] == ["pay(amount=<100)", "pay(amount=>=100)"]
    large = Policy.of("at most 0 pay(amount=>=*)").machine(symbols)
    assert [symbols[a] for a in np.flatnonzero(large.readout[:, 0])] == ["pay(amount=>=100)"]


def test_restricted_runs_machine_and_policies_side_by_side() -> None:
    draw = np.random.default_rng(0)
    machine = Mealy(
        symbols=SYMBOLS, tables=draw.integers(0, 4, (4, 4)), outputs=("x", "y"), readout=draw.integers(0, 2, (4, 4))
    )
    rules = [Policy.of("a before b"), Policy.of("at most 1 c")]
    both, states = restricted(machine, rules, "no")
    for word in product(SYMBOLS, repeat=5):
        state, past, wanted = machine.start, [], []
        for symbol in word:
            a = SYMBOLS.index(symbol)
            if (symbol == "b" and "a" not in past) or (symbol == "c" and "c" in past):
                wanted.append("no")
                continue
            past.append(symbol)
            wanted.append(machine.outputs[int(machine.readout[a, state])])
            state = int(machine.tables[a, state])
        assert [both.outputs[o] for o in both.output_ids(list(word)).tolist()] == wanted
        assert states[both.run(list(word))] == state


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("refund needs verify", "is no policy; wanted 'A before B'"),
        ("at most 9999 a", "counts to 1,000 at most; got 9,999"),
    ],
)
def test_policy_says_what_is_wrong(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text(f"# rules\na before b # fine\n\n{text}\n")
    with pytest.raises(BrokenFile, match="line 4: .*" + re.escape(sentence)):
        read_policies(tmp_path / "rules.txt")


def test_policy_refuses_a_name_that_no_symbol_has(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="names no symbol of the machine: unknown symbol 'refnd'"):
        Policy.of("a before refnd").machine(("a", "refund", END))
    with pytest.raises(InvalidConfig, match="about the end of a trace"):
        Policy.of("every a then b").machine(("a", "b"))
    (tmp_path / "empty.txt").write_text("# nothing\n")
    with pytest.raises(BrokenFile, match="there is no policy in it"):
        read_policies(tmp_path / "empty.txt")
