"""Every answer of every language, against a slow reading of the whole text before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from paper.experiments.text_languages import DEVELOPMENT, HELD_OUT, LANGUAGES

Lines = list[list[str]]
"""Commands before a question, word by word."""


def bank(before: Lines, question: list[str]) -> str:
    """The sum of all that was added and taken, one unit at a time."""
    signs = {"add": 1, "take": 9}
    mine = [line for line in before if line[0] in signs and line[1] == question[1]]
    return str(sum(signs[line[0]] * int(line[2]) for line in mine) % 10)


def dials(before: Lines, question: list[str]) -> str:
    return str(sum(int(line[0][2]) for line in before if line[0].startswith(question[0][0] + "+")) % 10)


def turnstile(before: Lines, question: list[str]) -> str:
    people = list[int]()
    for number, line in enumerate(before):
        if line[0] == "enter" and len(people) < 7:
            people.append(number)
        elif line[0] == "leave":
            people = people[1:]
        elif line[0] == "empty":
            people = []
    return str(len(people))


def variables(before: Lines, question: list[str]) -> str:
    """Follow the variable backwards to where its value was written."""
    name = question[1]
    for line in reversed(before):
        if line[0] == "set" and line[1] == name:
            return line[2]
        if line[0] == "copy" and line[1] == name:
            name = line[2]
        elif line[0] == "swap" and name in line[1:]:
            name = line[1] if name == line[2] else line[2]
    return "0"


def cups(before: Lines, question: list[str]) -> str:
    table = ["", "red?", "blue?", "", ""]
    for line in before:
        if line[0].isdigit():
            i, j = map(int, line[0])
            table[i], table[j] = table[j], table[i]
    return str(table.index(question[0]))


def scopes(before: Lines, question: list[str]) -> str:
    """Backwards; blocks that are closed are skipped whole."""
    closed = 0
    for line in reversed(before):
        if line[0] == "}":
            closed += 1
        elif line[0] == "{":
            closed = max(closed - 1, 0)
        elif line[0] == "let" and line[1] == question[1] and not closed:
            return line[2]
    return "0"


def brackets(before: Lines, question: list[str]) -> str:
    """What is left when all pairs are deleted."""
    text = "".join(line[0] for line in before if line[0] != "?")
    while (shorter := text.replace("()", "").replace("[]", "")) != text:
        text = shorter
    assert len(text) <= 4
    return text[-1] if text else "none"


def rooms(before: Lines, question: list[str]) -> str:
    here, key = 1 + 1j, 0j
    ways = {"north": -1, "south": 1, "west": -1j, "east": 1j}
    house = [r + c * 1j for r in range(3) for c in range(3)]
    carried = False
    for line in before:
        if line[0] == "go" and here + ways[line[1]] in house:
            here += ways[line[1]]
        carried = (carried or here == key) if line[0] == "take" else carried and line[0] != "drop"
        key = here if carried or (line[0] == "drop" and key is None) else key
    at = here if question == ["look"] else key
    return "hand" if carried and question != ["look"] else f"room{int(at.real)}{int(at.imag)}"


def boxes(before: Lines, question: list[str]) -> str:
    contents = {"left": {"coin", "ring", "pen"}, "middle": set[str](), "right": set[str]()}
    for line in before:
        if line[0] == "put":
            for box in contents.values():
                box.discard(line[1])
            contents[line[2]].add(line[1])
        elif line[0] == "empty":
            contents[line[3]] |= contents[line[1]]
            contents[line[1]] = set()
    return next(name for name, box in contents.items() if question[1] in box)


def branches(before: Lines, question: list[str]) -> str:
    """Backwards: how often the branch was committed to since it took the version of another."""

    def branch(upto: int) -> str:
        return next((line[1] for line in reversed(before[:upto]) if line[0] == "switch"), "main")

    if question == ["branch"]:
        return branch(len(before))
    name, commits = branch(len(before)), 0
    for at in range(len(before) - 1, -1, -1):
        if branch(at) == name:
            commits += before[at][0] == "commit"
            name = before[at][1] if before[at][0] == "merge" else name
    return str(commits % 5)


def session(before: Lines, question: list[str]) -> str:
    """The state by name; a row says where a request leads and what is answered."""
    table = {
        "out0": {"good": ("in", "welcome"), "bad": ("out1", "denied")},
        "out1": {"good": ("in", "welcome"), "bad": ("out2", "denied")},
        "out2": {"good": ("in", "welcome"), "bad": ("locked", "denied")},
        "locked": {"good": ("locked", "locked"), "bad": ("locked", "locked")},
        "in": {"good": ("in", "busy"), "bad": ("in", "busy"), "open": ("file", "ok"), "read": ("in", "closed"),
               "close": ("in", "closed"), "quit": ("out0", "bye")},
        "file": {"good": ("file", "busy"), "bad": ("file", "busy"), "open": ("file", "busy"), "read": ("file", "data"),
                 "close": ("in", "ok"), "quit": ("out0", "bye")},
    }  # fmt: skip
    state, answer = "out0", ""
    for line in [*before, question]:
        state, answer = ("out0", "ok") if line[0] == "reset" else table[state].get(line[0], (state, "denied"))
    return answer


def repl(before: Lines, question: list[str]) -> str:
    """Python runs it."""
    memory: dict[str, int] = {}
    exec("a, b, c, d, e = 1, 2, 3, 4, 5", memory)
    for line in before:
        if "=" in line:
            exec(f"{line[0]}, {line[1]} = {line[3]}, {line[4]}", memory)
    return str(memory[question[1]])


def undo(before: Lines, question: list[str]) -> str:
    """A tape whose oldest writing is lost: it becomes the bottom, which no undo removes."""
    tape = ["0"]
    for line in before:
        if line[0] == "write":
            tape.append(line[1])
            if len(tape) > 5:
                tape.pop(0)
        elif line[0] == "undo" and len(tape) > 1:
            tape.pop()
    return tape[-1]


def flip_flop(before: Lines, question: list[str]) -> str:
    return [line[1] for line in before if line[0] == "write"][-1]


INTERPRETERS: dict[str, Callable[[Lines, list[str]], str]] = {
    function.__name__: function
    for function in (bank, dials, turnstile, variables, cups, scopes, brackets, rooms, boxes, branches, session, repl,
                     undo, flip_flop)
}  # fmt: skip


def lines_of(name: str, words: list[str], asked: list[bool]) -> Iterator[tuple[list[str], str]]:
    """The commands of a text and their answers, cut by the grammar of the language alone."""
    sizes = {
        "bank": lambda w: 3, "variables": lambda w: 3, "scopes": lambda w: 1 if w in "{}" else 3,
        "brackets": lambda w: 2 if w == "?" else 1, "turnstile": lambda w: 2 if w == "count" else 1,
        "dials": lambda w: 2 if w.endswith("?") else 1, "cups": lambda w: 2 if w.endswith("?") else 1,
        "rooms": lambda w: {"go": 2, "look": 2, "where": 3}.get(w, 1),
        "boxes": lambda w: 4 if w == "empty" else 3, "session": lambda w: 2,
        "branches": lambda w: 1 if w == "commit" else 2, "repl": lambda w: 3 if w == "print" else 5,
        "undo": lambda w: 1 if w == "undo" else 2, "flip_flop": lambda w: 2,
    }  # fmt: skip
    at = 0
    while at + (size := sizes[name](words[at])) <= len(words):
        command, flags = words[at : at + size], asked[at : at + size]
        assert not any(flags[:-1])
        yield (command[:-1], command[-1]) if flags[-1] else (command, "")
        at += size
        if at >= len(words):
            return


@pytest.mark.parametrize("name", LANGUAGES)
def test_answers_of_every_language_follow_from_a_slow_reading(name: str) -> None:
    language, answered = LANGUAGES[name], set[str]()
    text = language.sample(60, 120, seed=1)
    for tokens, asked in zip(text.tokens, text.asked, strict=True):
        before: Lines = []
        for command, answer in lines_of(name, [language.words[n] for n in tokens], asked.tolist()):
            if answer:
                assert answer == INTERPRETERS[name](before, command)
                answered.add(answer)
            before.append(command)
    assert len(answered) > 1
    assert set(np.unique(text.tokens)) == set(range(len(language.words)))


def test_sample_repeats_itself_and_differs_by_seed() -> None:
    language = LANGUAGES["rooms"]
    one, same, other = (language.sample(3, 50, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.tokens, same.tokens)
    assert np.array_equal(one.asked, same.asked)
    assert not np.array_equal(one.tokens, other.tokens)
    longer = language.sample(3, 80, 1)
    assert np.array_equal(longer.tokens[:, :50], one.tokens)


def test_kinds_are_five_and_the_literature_and_a_held_out_language_is_of_each() -> None:
    assert {LANGUAGES[name].kind for name in HELD_OUT} == {one.kind for one in LANGUAGES.values()} - {"literature"}
    assert not set(HELD_OUT) & set(DEVELOPMENT)
    assert len({one.kind for one in LANGUAGES.values()}) == 6
    assert all(language.about for language in LANGUAGES.values())
