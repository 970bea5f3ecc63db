"""Languages whose questions have one right answer, which needs a state: written down before anything was tuned on them.

A language writes commands for ever, from a random generator: `(prompt, answer)`, both words with spaces between; the
answer is empty where nothing is asked. Eleven are of our own making, in five kinds; three are from the literature. All
have finitely many states. Settings are chosen on the DEVELOPMENT languages; the HELD_OUT ones take no part in it.

>>> text = LANGUAGES["bank"].sample(texts=2, length=12, seed=0)
>>> text.tokens.shape, text.asked.shape
((2, 12), (2, 12))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from exactstate._types import Bools, Ints

Command = tuple[str, str]
DIGITS = tuple("0123456789")


@dataclass(frozen=True)
class Text:
    """Texts, and which of their tokens are answers."""

    tokens: Ints
    """B L."""
    asked: Bools
    """B L: whether the token is the one right answer to a question."""


@dataclass(frozen=True)
class Language:
    """Words and who writes them."""

    name: str
    kind: str
    words: tuple[str, ...]
    write: Callable[[Random], Iterator[Command]]

    @property
    def about(self) -> str:
        """In a sentence."""
        return (self.write.__doc__ or "").split("\n")[0]

    def sample(self, texts: int, length: int, seed: int) -> Text:
        """So many texts, each cut after so many tokens."""
        number = {word: n for n, word in enumerate(self.words)}
        tokens, asked = np.empty((texts, length), np.int64), np.zeros((texts, length), bool)
        for at in range(texts):
            line, answers = list[int](), list[bool]()
            for prompt, answer in self.write(Random(f"{self.name} {seed} {at}")):
                line += [number[word] for word in f"{prompt} {answer}".split()]
                answers += [False] * len(prompt.split()) + [True] * len(answer.split())
                if len(line) >= length:
                    break
            tokens[at], asked[at] = line[:length], answers[:length]
        return Text(tokens, asked)


# Counters and accounts


def bank(rng: Random) -> Iterator[Command]:
    """Two accounts modulo ten: `add a 3`, `take b 4`, and `show a` is answered; three tokens for a command."""
    balance = {"a": 0, "b": 0}
    while True:
        account, amount = rng.choice("ab"), rng.randrange(10)
        match rng.choice(("add", "take", "show")):
            case "show":
                yield f"show {account}", str(balance[account])
            case kind:
                balance[account] = (balance[account] + (amount if kind == "add" else -amount)) % 10
                yield f"{kind} {account} {amount}", ""


def dials(rng: Random) -> Iterator[Command]:
    """Two counters modulo ten, turned by one, two or five: a token for a command, every sixth is a question."""
    at = {"a": 0, "b": 0}
    while True:
        dial, turn = rng.choice("ab"), rng.choice((1, 2, 5))
        if rng.random() < 1 / 6:
            yield f"{dial}?", str(at[dial])
        else:
            at[dial] = (at[dial] + turn) % 10
            yield f"{dial}+{turn}", ""


def turnstile(rng: Random) -> Iterator[Command]:
    """A room for seven: who finds it full does not enter; how many are inside is asked after every fourteenth token."""
    inside = 0
    while True:
        kind = rng.choices(("enter", "leave", "empty", "count"), (6, 6, 1, 1))[0]
        if kind == "count":
            yield kind, str(inside)
        else:
            inside = {"enter": min(inside + 1, 7), "leave": max(inside - 1, 0), "empty": 0}[kind]
            yield kind, ""


# Assignments and copies


def variables(rng: Random) -> Iterator[Command]:
    """Three variables with five values: `set x 3`, `copy x y`, `swap x y`, and `print x` is answered."""
    value = dict.fromkeys("xyz", 0)
    while True:
        one, other = rng.sample("xyz", 2)
        match rng.choices(("set", "copy", "swap", "print"), (3, 2, 2, 5))[0]:
            case "set":
                value[one] = rng.randrange(5)
                yield f"set {one} {value[one]}", ""
            case "copy":
                value[one] = value[other]
                yield f"copy {one} {other}", ""
            case "swap":
                value[one], value[other] = value[other], value[one]
                yield f"swap {one} {other}", ""
            case _:
                yield f"print {one}", str(value[one])


def cups(rng: Random) -> Iterator[Command]:
    """Four cups in a ring, a red and a blue ball: neighbors change places, a token for a command."""
    place = {"red": 1, "blue": 2}
    while True:
        if rng.random() < 0.3:
            ball = rng.choice(("red", "blue"))
            yield f"{ball}?", str(place[ball])
        else:
            first = rng.randrange(1, 5)
            second = first % 4 + 1
            moved = {first: second, second: first}
            place = {ball: moved.get(at, at) for ball, at in place.items()}
            yield f"{first}{second}", ""


# Nested scopes


def scopes(rng: Random) -> Iterator[Command]:
    """Two names with three values, in blocks up to three deep: a block forgets what was assigned inside."""
    stack = [{"x": 0, "y": 0}]
    while True:
        name = rng.choice("xy")
        match rng.choices(("{", "}", "let", "use"), (2 * (len(stack) < 4), 2 * (len(stack) > 1), 3, 4))[0]:
            case "{":
                stack.append(dict(stack[-1]))
                yield "{", ""
            case "}":
                stack.pop()
                yield "}", ""
            case "let":
                stack[-1][name] = rng.randrange(3)
                yield f"let {name} {stack[-1][name]}", ""
            case _:
                yield f"use {name}", str(stack[-1][name])


def brackets(rng: Random) -> Iterator[Command]:
    """Brackets of two kinds up to four deep, a token for a command; which one is open is asked now and then."""
    stack = list[str]()
    closing = {"(": ")", "[": "]"}
    while True:
        kind = rng.choices(("open", "close", "?"), (4 * (len(stack) < 4), 4 * bool(stack), 1))[0]
        if kind == "open":
            stack.append(rng.choice("(["))
            yield stack[-1], ""
        elif kind == "close":
            yield closing[stack.pop()], ""
        else:
            yield "?", stack[-1] if stack else "none"


# Maps and objects


def rooms(rng: Random) -> Iterator[Command]:
    """Nine rooms in a square and a key that is carried: `go north` into a wall does nothing; `look`, `where key`."""
    row = column = 1
    key: tuple[int, int] | None = (0, 0)
    while True:
        match rng.choices(("go", "take", "drop", "look", "where key"), (6, 2, 1, 2, 2))[0]:
            case "go":
                way = rng.choice(("north", "south", "west", "east"))
                row = min(max(row + (way == "south") - (way == "north"), 0), 2)
                column = min(max(column + (way == "east") - (way == "west"), 0), 2)
                yield f"go {way}", ""
            case "take":
                key = None if key == (row, column) else key
                yield "take", ""
            case "drop":
                key = (row, column) if key is None else key
                yield "drop", ""
            case "look":
                yield "look", f"room{row}{column}"
            case _:
                yield "where key", "hand" if key is None else f"room{key[0]}{key[1]}"


def boxes(rng: Random) -> Iterator[Command]:
    """Three things in three boxes: `put coin left`, `empty left into right` moves all, `find coin` is answered."""
    place = dict.fromkeys(("coin", "ring", "pen"), "left")
    while True:
        thing, (one, other) = rng.choice(("coin", "ring", "pen")), rng.sample(("left", "middle", "right"), 2)
        match rng.choices(("put", "empty", "find"), (2, 1, 2))[0]:
            case "put":
                place[thing] = one
                yield f"put {thing} {one}", ""
            case "empty":
                place = {name: other if at == one else at for name, at in place.items()}
                yield f"empty {one} into {other}", ""
            case _:
                yield f"find {thing}", place[thing]


# Protocols


def branches(rng: Random) -> Iterator[Command]:
    """Three branches at versions modulo five: `commit` to the current one, `switch dev`, `merge main` takes its
    version."""
    version, current = dict.fromkeys(("main", "dev", "fix"), 0), "main"
    while True:
        name = rng.choice(("main", "dev", "fix"))
        match rng.choices(("commit", "switch", "merge", "version", "branch"), (4, 3, 1, 3, 1))[0]:
            case "commit":
                version[current] = (version[current] + 1) % 5
                yield "commit", ""
            case "switch":
                current = name
                yield f"switch {name}", ""
            case "merge":
                version[current] = version[name]
                yield f"merge {name}", ""
            case "version":
                yield "version", str(version[current])
            case _:
                yield "branch", current


def session(rng: Random) -> Iterator[Command]:
    """A server that answers every request: three wrong passwords lock it, files open and close, a reset begins anew."""
    wrong, user, is_open = 0, False, False
    while True:
        match rng.choices(("good", "bad", "open", "read", "close", "quit", "reset"), (3, 3, 3, 4, 2, 1, 1))[0]:
            case "good":
                answer = "locked" if wrong == 3 else "busy" if user else "welcome"
                user, wrong = wrong < 3, wrong if wrong == 3 else 0
                yield "good", answer
            case "bad":
                answer = "locked" if wrong == 3 else "busy" if user else "denied"
                wrong = wrong if user else min(wrong + 1, 3)
                yield "bad", answer
            case "open":
                answer = "denied" if not user else "busy" if is_open else "ok"
                is_open = is_open or user
                yield "open", answer
            case "read":
                yield "read", "data" if is_open else "denied" if not user else "closed"
            case "close":
                answer, is_open = "ok" if is_open else "denied" if not user else "closed", False
                yield "close", answer
            case "quit":
                answer, user, is_open = "bye" if user else "denied", False, False
                yield "quit", answer
            case _:
                wrong, user, is_open = 0, False, False
                yield "reset", "ok"


# From the literature


def repl(rng: Random) -> Iterator[Command]:
    """Lines of Python that permute five variables, some of which are printed: `a b = b a`, `print a` (2602.14814)."""
    value = {name: str(n) for n, name in enumerate("abcde", 1)}
    while True:
        one, other = rng.sample("abcde", 2)
        if rng.random() < 0.5:
            yield f"print {one}", value[one]
        else:
            value[one], value[other] = value[other], value[one]
            yield f"{one} {other} = {other} {one}", ""


def undo(rng: Random) -> Iterator[Command]:
    """Flip-flop with `undo` of the last write, four of them remembered: a bounded stack (2604.05923)."""
    written = ["0"]
    while True:
        bit = rng.choice("01")
        match rng.choices(("write", "undo", "ignore", "read"), (3, 2, 3, 2))[0]:
            case "write":
                written = [*written, bit][-5:]
                yield f"write {bit}", ""
            case "undo":
                written = written[: max(len(written) - 1, 1)]
                yield "undo", ""
            case "ignore":
                yield f"ignore {bit}", ""
            case _:
                yield "read", written[-1]


def flip_flop(rng: Random) -> Iterator[Command]:
    """Flip-flop language modeling: `write 1`, `ignore 0` eight times in ten, `read` is answered (2306.00946)."""
    held = rng.choice("01")
    yield f"write {held}", ""
    while True:
        kind, bit = rng.choices(("write", "ignore", "read"), (1, 8, 1))[0], rng.choice("01")
        held = bit if kind == "write" else held
        yield (kind, held) if kind == "read" else (f"{kind} {bit}", "")


def _language(kind: str, write: Callable[[Random], Iterator[Command]], words: str) -> Language:
    return Language(write.__name__, kind, tuple(words.split()), write)


_DIGITS = " ".join(DIGITS)
LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (
        _language("counters", bank, f"add take show a b {_DIGITS}"),
        _language("counters", dials, f"a+1 a+2 a+5 b+1 b+2 b+5 a? b? {_DIGITS}"),
        _language("counters", turnstile, "enter leave empty count 0 1 2 3 4 5 6 7"),
        _language("assignments", variables, "set copy swap print x y z 0 1 2 3 4"),
        _language("assignments", cups, "12 23 34 41 red? blue? 1 2 3 4"),
        _language("scopes", scopes, "{ } let use x y 0 1 2"),
        _language("scopes", brackets, "( ) [ ] ? none"),
        _language(
            "objects", rooms,
            "go north south west east take drop look where key hand room00 room01 room02 room10 room11 room12 "
            "room20 room21 room22",
        ),
        _language("objects", boxes, "put empty into find coin ring pen left middle right"),
        _language("protocols", branches, "commit switch merge version branch main dev fix 0 1 2 3 4"),
        _language(
            "protocols", session,
            "good bad open read close quit reset ok denied locked busy welcome data closed bye",
        ),
        _language("literature", repl, "a b c d e = print 1 2 3 4 5"),
        _language("literature", undo, "write undo ignore read 0 1"),
        _language("literature", flip_flop, "write ignore read 0 1"),
    )
}  # fmt: skip
"""By name."""
DEVELOPMENT = ("bank", "variables")
"""All settings are chosen on these."""
HELD_OUT = ("turnstile", "cups", "brackets", "boxes", "session")
"""One of each kind: kept out of all tuning."""
