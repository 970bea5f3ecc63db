"""Check a certificate again: its seal, its machine step by step, its counts, its margins against rounding.

What is proved when nothing is found: a machine with these tables, started there and run on any word of any length that
the grammar permits, goes through the configurations listed and says what the target wants. And in a format that is
listed as proved, computed tables and read-outs are the exact ones, if the margins and errors are those of the weights:
those two come from the weights, which are not in the file, and only whoever has the weights can compute them again.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# -- Is every entry of a certificate what it should be: names, whole numbers in range, rows of one length?


class Unreadable(ValueError):
    """The file is no certificate at all: where, and why."""

    def __init__(self, path: object, reason: str, line: int | None = None) -> None:
        super().__init__(f"{path}: {reason}" if line is None else f"{path}, line {line}: {reason}")
        self.path, self.reason, self.line = path, reason, line


class Refused(Exception):
    """The reason why a certificate is not accepted."""


def entries(value: object, where: str, *keys: str) -> dict[str, Any]:
    """An object with exactly these keys."""
    if not isinstance(value, dict):
        raise Refused(f"{where} is {_seen(value)}; wanted an object.")
    for key in keys:
        if key not in value:
            raise Refused(f"{where} has no entry {key!r}.")
    for key in value:
        if key not in keys:
            raise Refused(f"{where} has an entry {key!r:.60} that does not belong there.")
    return value


def text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise Refused(f"{where} is {_seen(value)}; wanted a string.")
    return value


def listed(value: object, where: str, count: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (count is not None and len(value) != count):
        wanted = "a list" if count is None else f"a list of {count}"
        raise Refused(f"{where} is {_seen(value)}; wanted {wanted}.")
    return value


def names(value: object, where: str, *, least: int = 1) -> list[str]:
    """Different strings."""
    for i, name in enumerate(listed(value, where)):
        text(name, f"{where}[{i}]")
    found: list[str] = value  # type: ignore[assignment]
    if len(found) < least:
        raise Refused(f"{where} is empty.")
    if len(set(found)) < len(found):
        raise Refused(f"{where} holds {next(n for n in found if found.count(n) > 1)!r:.60} twice.")
    return found


def whole(value: object, where: str, low: int, below: int) -> int:
    """A whole number from low to below - 1."""
    # bool is a subclass of int, and true is no number
    if type(value) is not int or not low <= value < below:
        raise Refused(f"{where} is {_seen(value)}; wanted a whole number from {low} to {below - 1}.")
    return value


def row(value: object, where: str, count: int | None, low: int, below: int) -> list[int]:
    found = listed(value, where, count)
    for i, entry in enumerate(found):
        if type(entry) is not int or not low <= entry < below:
            whole(entry, f"{where}[{i}]", low, below)
    return found


def rows(value: object, where: str, count: int | None, length: int, low: int, below: int) -> list[list[int]]:
    """Rows of one length, of whole numbers."""
    return [row(entry, f"{where}[{i}]", length, low, below) for i, entry in enumerate(listed(value, where, count))]


def ranged(value: object, where: str, ranges: list[tuple[int, int]]) -> list[list[int]]:
    """Rows in which every place has a range of its own."""
    low, below = min(low for low, _ in ranges), max(below for _, below in ranges)
    found = rows(value, where, None, len(ranges), low, below)
    for i, entry in enumerate(found):
        for k, (number, (low, below)) in enumerate(zip(entry, ranges, strict=True)):
            if not low <= number < below:
                whole(number, f"{where}[{i}][{k}]", low, below)
    return found


def distinct(value: list[list[int]], where: str) -> dict[tuple[int, ...], int]:
    """The number of every row; no two are the same."""
    number = {tuple(entry): i for i, entry in enumerate(value)}
    if len(number) < len(value):
        again = next(i for i, entry in enumerate(value) if number[tuple(entry)] != i)
        raise Refused(f"{where}[{again}] comes twice.")
    return number


def amounts(value: object, where: str, known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Numbers that are not negative where `known` says so, null elsewhere; an array of that shape, with infinities."""
    found = np.full(known.shape, np.inf)
    _fill(value, where, known, found)
    return found


def _fill(value: object, where: str, known: NDArray[np.bool_], found: NDArray[np.float64]) -> None:
    for i, entry in enumerate(listed(value, where, len(known))):
        at = f"{where}[{i}]"
        if known.ndim > 1:
            _fill(entry, at, known[i], found[i])
        elif not known[i]:
            if entry is not None:
                raise Refused(f"{at} is {_seen(entry)}; wanted null, for nothing is chosen there.")
        elif type(entry) is not float or not (0 <= entry < math.inf):
            raise Refused(f"{at} is {_seen(entry)}; wanted a decimal number that is not negative.")
        else:
            found[i] = entry


def _seen(value: object) -> str:
    """What came, in a few words."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    return f"{value!r:.60}"


# -- Read the JSON of a certificate: every key once, every number a number.

FORMAT, VERSION = "detent-certificate", 1


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a certificate file; refused when it is no certificate at all."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        reason = "there is no such file." if isinstance(error, FileNotFoundError) else f"{error.strerror}.".lower()
        raise Unreadable(path, reason) from None
    try:
        content = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_constant)
    except UnicodeDecodeError:
        raise Unreadable(path, "this is not UTF-8 text.") from None
    except json.JSONDecodeError as error:
        raise Unreadable(
            path, f"this is not JSON: {error.msg.lower().removesuffix(' at')} at column {error.colno}.", error.lineno
        ) from None
    except RecursionError:
        raise Unreadable(path, "lists are nested too deep for a certificate.") from None
    except ValueError as error:
        raise Unreadable(path, f"{error}.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise Unreadable(path, f'wanted a JSON object with "format": "{FORMAT}"; this is some other JSON.')
    if type(content.get("version")) is not int or content["version"] != VERSION:
        raise Unreadable(path, f"this is version {content.get('version')!r:.20}; this detent reads version {VERSION}.")
    return content


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the entry {next(key for key in keys if keys.count(key) > 1)!r:.60} comes twice")
    return entries


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that JSON knows")


# -- The parts of a certificate, each taken apart and found to be in form: target, grammar, question, layers.

MOST = 1 << 31


@dataclass(frozen=True)
class Layer:
    heads: list[int]
    start: list[int]
    inputs: list[list[int]]
    number_of_input: dict[tuple[int, ...], int]
    windows: list[list[int]]
    number_of_window: dict[tuple[int, ...], int]
    tables: list[list[list[int]]]
    """head, window, index"""


def target_of(value: Any, A: int) -> tuple[list[str], int, list[list[int]], list[str], list[list[int]]]:
    """(states, start, tables, labels, wanted)"""
    by_output = isinstance(value, dict) and value.get("says") == "outputs"
    entries(value, "target", "says", "states", "start", "tables", *(("outputs", "readout") if by_output else ()))
    states = names(value["states"], "target.states")
    n = len(states)
    start = whole(value["start"], "target.start", 0, n)
    tables = rows(value["tables"], "target.tables", A, n, 0, n)
    if by_output:
        outputs = names(value["outputs"], "target.outputs")
        return states, start, tables, outputs, rows(value["readout"], "target.readout", A, n, 0, len(outputs))
    if value["says"] != "states":
        raise Refused(f"target.says is {value['says']!r:.40}; wanted 'states' or 'outputs'.")
    return states, start, tables, states, tables


def grammar_of(value: Any, A: int) -> tuple[int, list[list[int]], list[int]]:
    """(start, tables, refused); without a grammar there is one place, where every symbol may follow."""
    if value is None:
        return 0, [[0]] * A, [0]
    entries(value, "grammar", "places", "start", "tables", "refused")
    count = len(names(value["places"], "grammar.places"))
    start = whole(value["start"], "grammar.start", 0, count)
    tables = rows(value["tables"], "grammar.tables", A, count, 0, count)
    return start, tables, row(value["refused"], "grammar.refused", count, 0, 2)


def question_of(value: Any, A: int, n: int) -> dict[str, Any] | None:
    if value is None:
        return None
    entries(value, "question", "answers", "start", "tables", "asked", "right")
    answers = names(value["answers"], "question.answers")
    tables = listed(value["tables"], "question.tables", A)
    z = len(listed(tables[0], "question.tables[0]"))
    items = len(listed(listed(value["right"], "question.right", n)[0], "question.right[0]"))
    whole(value["start"], "question.start", 0, z)
    rows(tables, "question.tables", A, z, 0, z)
    rows(value["asked"], "question.asked", A, z, -1, items)
    # one more than there are answers: where none is right
    rows(value["right"], "question.right", n, items, 0, len(answers) + 1)
    return value


def layers_of(value: Any, A: int, reach: int) -> list[Layer]:
    layers: list[Layer] = []
    for number, layer in enumerate(listed(value, "layers")):
        where = f"layers[{number}]"
        entries(layer, where, "heads", "start", "inputs", "windows", "tables")
        heads = row(layer["heads"], f"{where}.heads", None, 1, MOST)
        if not heads:
            raise Refused(f"{where}.heads is empty.")
        start = row(layer["start"], f"{where}.start", len(heads), 0, MOST)
        for h, (k, d) in enumerate(zip(start, heads, strict=True)):
            whole(k, f"{where}.start[{h}]", 0, d)
        below = layers[-1] if layers else None
        inputs = ranged(
            layer["inputs"],
            f"{where}.inputs",
            [(0, A)] if below is None else [(0, len(below.inputs)), *((0, d) for d in below.heads)],
        )
        if not layer["windows"] or not inputs:
            raise Refused(f"{where} has no inputs or no windows.")
        if below is None and inputs != [[symbol] for symbol in range(A)]:
            raise Refused(f"{where}.inputs are not the {A} symbols in order.")
        windows = rows(layer["windows"], f"{where}.windows", None, reach, -1, len(inputs))
        tables = [
            rows(table, f"{where}.tables[{h}]", len(windows), d, -1, d)
            for h, (d, table) in enumerate(
                zip(heads, listed(layer["tables"], f"{where}.tables", len(heads)), strict=True)
            )
        ]
        layers.append(
            Layer(
                heads=heads, start=start, inputs=inputs, number_of_input=distinct(inputs, f"{where}.inputs"),
                windows=windows, number_of_window=distinct(windows, f"{where}.windows"), tables=tables,
            )
        )  # fmt: skip
    if not layers:
        raise Refused("layers is empty.")
    return layers


# -- What a certificate tells, taken apart and found to be in form.

KEYS = (
    "format", "version", "name", "made", "weights", "evaluated", "symbols", "target", "grammar", "question", "reach",
    "layers", "configurations", "readout", "replies", "matching", "counts", "margins", "rounding", "proved", "sha256",
)  # fmt: skip
REACH = 1024
"""More than any convolution spans."""


@dataclass(frozen=True)
class Told:
    """A certificate in form: every number is in range, and whether they agree is another matter."""

    symbols: list[str]
    states: list[str]
    start: int
    tables: list[list[int]]
    """A n"""
    wanted: list[list[int]]
    """A n: the label that is right when a symbol is read in a state."""
    labels: list[str]
    place: int
    rules: list[list[int]]
    """A g: the moves of the grammar."""
    refused: list[int]
    """g"""
    question: dict[str, Any] | None
    reach: int
    layers: list[Layer]
    configurations: list[list[int]]
    """Indices of all heads, the last inputs of the top layer, the place in the grammar."""
    readout: list[list[int]]
    replies: list[list[int]]
    """For every entry of the matching."""
    matching: list[list[int]]
    """Configuration, state of the target, state of the question."""


def told(content: dict[str, Any]) -> Told:
    """Take a certificate apart; the first entry that is not in form is the reason to refuse it."""
    entries(content, "the certificate", *KEYS)
    _origin(content)
    symbols = names(content["symbols"], "symbols")
    A = len(symbols)
    states, start, tables, labels, wanted = target_of(content["target"], A)
    place, rules, refused = grammar_of(content["grammar"], A)
    question = question_of(content["question"], A, len(states))
    reach = whole(content["reach"], "reach", 1, REACH)
    layers = layers_of(content["layers"], A, reach)
    shown = content["grammar"] is not None
    low_ends = [(0, d) for layer in layers for d in layer.heads] + [(-1, len(layers[-1].inputs))] * (reach - 1)
    configurations = _configurations(
        content["configurations"], [*low_ends, (0, len(refused))] if shown else low_ends, shown
    )
    moves = [sum(not refused[rule[one[-1]]] for rule in rules) for one in configurations]
    matching = _matching(content["matching"], len(configurations), len(states), question)
    replies = _replies(content["replies"], len(matching), question)
    readout = _by_step(content["readout"], "readout", moves, len(labels))
    return Told(
        symbols=symbols, states=states, start=start, tables=tables, wanted=wanted, labels=labels, place=place,
        rules=rules, refused=refused, question=question, reach=reach, layers=layers, configurations=configurations,
        readout=readout, replies=replies, matching=matching,
    )  # fmt: skip


def _origin(content: dict[str, Any]) -> None:
    text(content["name"], "name")
    for key, version in entries(content["made"], "made", "detent", "python", "numpy").items():
        text(version, f"made.{key}")
    for key in ("weights", "sha256"):
        if not re.fullmatch("[0-9a-f]{64}", text(content[key], key)):
            raise Refused(f"{key} is not a SHA-256 in 64 hexadecimal digits.")
    if content["evaluated"] not in ("float64", "float32"):
        raise Refused(f"evaluated is {content['evaluated']!r:.40}; wanted 'float64' or 'float32'.")


def _configurations(value: Any, ranges: list[tuple[int, int]], shown: bool) -> list[list[int]]:
    """With the place in the grammar last, also where there is no grammar."""
    found = ranged(value, "configurations", ranges)
    if not found:
        raise Refused("configurations is empty.")
    distinct(found, "configurations")
    return found if shown else [[*entry, 0] for entry in found]


def _by_step(value: Any, where: str, moves: list[int], below: int) -> list[list[int]]:
    """For every configuration one number for every symbol that may follow."""
    found = listed(value, where, len(moves))
    return [
        row(entry, f"{where}[{i}]", count, 0, below) for i, (entry, count) in enumerate(zip(found, moves, strict=True))
    ]


def _replies(value: Any, pairs: int, question: dict[str, Any] | None) -> list[list[int]]:
    """For every entry of the matching the answers that are given; without a question there are none."""
    if question is None:
        if value is not None:
            raise Refused("replies are given, but there is no question.")
        return [[] for _ in range(pairs)]
    found = listed(value, "replies", pairs)
    return [row(entry, f"replies[{i}]", None, 0, len(question["answers"])) for i, entry in enumerate(found)]


def _matching(value: Any, c: int, n: int, question: dict[str, Any] | None) -> list[list[int]]:
    """With the state of the question last, also where there is none."""
    ranges = [(0, c), (0, n)]
    if question is not None:
        ranges.append((0, len(question["tables"][0])))
    found = ranged(value, "matching", ranges)
    if not found:
        raise Refused("matching is empty.")
    distinct(found, "matching")
    return found if question is not None else [[*entry, 0] for entry in found]


# -- Run every configuration of a certificate through the tables it gives, and see that all it says is so.

Bools = NDArray[np.bool_]
Final = tuple[int, ...]
"""What a read-out depends on: the input of the top layer, and the indices it has moved to."""


class Replay:
    """The machine that a certificate describes, run step by step."""

    def __init__(self, told: Told) -> None:
        self.told = told
        self.number = {tuple(one): i for i, one in enumerate(told.configurations)}
        A = len(told.symbols)
        self.columns = [[np.zeros((A, d), bool) for d in layer.heads] for layer in told.layers]
        """layer, head: A d, whether this index was moved by this symbol."""
        self.steps = np.zeros(A, bool)
        """A: whether this symbol was read."""
        self.used_inputs = [set[int]() for _ in told.layers]
        self.used_windows = [set[int]() for _ in told.layers]
        self.used_entries = [[np.zeros((len(layer.windows), d), bool) for d in layer.heads] for layer in told.layers]
        self.label_of: dict[Final, int] = {}
        self.moves: list[list[tuple[int, int, Final]]] = []
        """For every configuration and symbol that may follow: the symbol, the configuration after it, the read-out."""

    def run(self) -> None:
        """Follow every symbol from every configuration; refuse what does not hold."""
        told = self.told
        home = [k for layer in told.layers for k in layer.start] + [-1] * (told.reach - 1) + [told.place]
        if told.configurations[0] != home:
            raise Refused(f"configurations[0] is {told.configurations[0]}; the heads begin at {home}.")
        for number in range(len(told.configurations)):
            self._follow(number)
        all_reached([[after for _, after, _ in moves] for moves in self.moves], "configurations")
        self._all_used()

    def _follow(self, number: int) -> None:
        """One step by every symbol that may follow."""
        told, configuration = self.told, self.told.configurations[number]
        moves: list[tuple[int, int, Final]] = []
        place = configuration[-1]
        for symbol, rule in enumerate(told.rules):
            if told.refused[rule[place]]:
                continue
            after, final = self._step(number, configuration, symbol)
            reached = self.number.get((*after, rule[place]))
            if reached is None:
                raise Refused(
                    f"{self._way(number, symbol)} to {[*after, rule[place]]}, which is not among configurations."
                )
            said = told.readout[number][len(moves)]
            if self.label_of.setdefault(final, said) != said:
                raise Refused(f"readout[{number}][{len(moves)}]: at the same input and indices something else is said.")
            self.steps[symbol] = True
            moves.append((symbol, reached, final))
        self.moves.append(moves)

    def _step(self, number: int, configuration: list[int], symbol: int) -> tuple[tuple[int, ...], Final]:
        """(the configuration after the symbol, without the place; what is read out)."""
        told = self.told
        at, newest = 0, 0
        after: list[int] = []
        final: tuple[int, ...] = ()
        remembered = configuration[-told.reach : -1]
        for depth, layer in enumerate(told.layers):
            key = (symbol,) if not depth else (newest, *after[-len(told.layers[depth - 1].heads) :])
            found = layer.number_of_input.get(key)
            if found is None:
                raise Refused(f"{self._way(number, symbol)} to the input {key}, not among layers[{depth}].inputs.")
            newest = found
            self.used_inputs[depth].add(newest)
            window = (*(self._below(last, depth) for last in remembered), newest)
            where = layer.number_of_window.get(window)
            if where is None:
                raise Refused(f"{self._way(number, symbol)} to the window {window}, not among layers[{depth}].windows.")
            self.used_windows[depth].add(where)
            moved = []
            for head, table in enumerate(layer.tables):
                k = configuration[at]
                if table[where][k] < 0:
                    raise Refused(f"layers[{depth}].tables[{head}][{where}][{k}] is -1, but it is used.")
                self.used_entries[depth][head][where, k] = True
                self.columns[depth][head][symbol, k] = True
                moved.append(table[where][k])
                at += 1
            after += moved
            final = (newest, *moved)
        return (*after, *[*remembered, newest][1:]), final

    def _below(self, last: int, depth: int) -> int:
        """The input of a layer that belongs to an input of the top layer."""
        for layer in self.told.layers[:depth:-1]:
            last = layer.inputs[last][0] if last >= 0 else -1
        return last

    def _all_used(self) -> None:
        """Nothing is told of a layer that no step needs."""
        for depth, layer in enumerate(self.told.layers):
            where = f"layers[{depth}]"
            for kind, used, all_of in (
                ("inputs", self.used_inputs[depth], layer.inputs if depth else []),  # of the first: every symbol
                ("windows", self.used_windows[depth], layer.windows),
            ):
                if len(used) < len(all_of):
                    unused = next(i for i in range(len(all_of)) if i not in used)
                    raise Refused(f"{where}.{kind}[{unused}] is never used.")
            for head, (table, used_entries) in enumerate(zip(layer.tables, self.used_entries[depth], strict=True)):
                for w, k in np.argwhere(~used_entries & (np.array(table) >= 0)).tolist():
                    raise Refused(f"{where}.tables[{head}][{w}][{k}] is never used; wanted -1.")

    def _way(self, number: int, symbol: int) -> str:
        return f"configurations[{number}] and the symbol {self.told.symbols[symbol]!r} lead"


def all_reached(leads: list[list[int]], where: str) -> None:
    """Nothing is listed that no word leads to."""
    seen, queue = {0}, [0]
    for one in queue:
        fresh = [then for then in leads[one] if then not in seen]
        seen.update(fresh)
        queue += dict.fromkeys(fresh)
    if len(seen) < len(leads):
        raise Refused(f"{where}[{next(i for i in range(len(leads)) if i not in seen)}] is never reached.")


# -- Walk the target beside the replayed machine: is every pair listed that words meet, and all that is said right?


def matched(replay: Replay) -> Bools:
    """Refuse a matching that does not hold; A: whether something is asked when a symbol is read."""
    told, question = replay.told, replay.told.question
    asking, asked, right = [[0]] * len(told.symbols), [[-1]] * len(told.symbols), [[0]] * len(told.states)
    begin = 0
    if question is not None:
        begin, asking, asked, right = (question[key] for key in ("start", "tables", "asked", "right"))
    if told.matching[0] != [0, told.start, begin]:
        raise Refused(f"matching[0] is {told.matching[0]}; the starts are {[0, told.start, begin]}.")
    asked_at, reply_of = np.zeros(len(told.symbols), bool), dict[Final, int]()
    pairs = {tuple(pair): i for i, pair in enumerate(told.matching)}
    leads: list[list[int]] = []
    for i, (configuration, task, z) in enumerate(told.matching):
        leads.append([])
        answered: list[int] = []
        for step, (symbol, reached, final) in enumerate(replay.moves[configuration]):
            then = (reached, told.tables[symbol][task], asking[symbol][z])
            if then not in pairs:
                raise Refused(
                    f"matching[{i}] and the symbol {told.symbols[symbol]!r} lead to {list(then)}, "
                    "which is not among matching."
                )
            leads[-1].append(pairs[then])
            said, wanted = told.readout[configuration][step], told.wanted[symbol][task]
            if said != wanted:
                raise Refused(
                    f"readout[{configuration}][{step}] says {told.labels[said]!r}; the target, beside it in "
                    f"matching[{i}], wants {told.labels[wanted]!r}."
                )
            if (item := asked[symbol][z]) >= 0:
                asked_at[symbol] = True
                answered.append(reply_of.setdefault(final, right[then[1]][item]))
                if answered[-1] != right[then[1]][item]:
                    raise Refused(f"matching[{i}]: two answers are right where only one can be given.")
        if told.replies[i] != answered:
            raise Refused(f"replies[{i}] is {told.replies[i]}; {answered} is right.")
    all_reached(leads, "matching")
    return asked_at


@dataclass(frozen=True)
class Report:
    """What the check of a certificate found. True when nothing is wrong."""

    findings: tuple[str, ...]
    """Reasons to refuse it."""

    def __bool__(self) -> bool:
        return not self.findings


def check(certificate: str | os.PathLike[str] | Mapping[str, Any]) -> Report:
    """Check a certificate, given as a file or as its content; a file that is no certificate raises an error."""
    content = dict(certificate) if isinstance(certificate, Mapping) else read(certificate)
    return Report((*_reasons(_seal, content), *_reasons(_machine, content)))


def _reasons(look: Callable[[dict[str, Any]], None], content: dict[str, Any]) -> tuple[str, ...]:
    try:
        look(content)
    except Refused as reason:
        return (str(reason),)
    except RecursionError:
        return ("lists are nested too deep.",)
    return ()


def _seal(content: dict[str, Any]) -> None:
    bare = {key: value for key, value in content.items() if key != "sha256"}
    canonical = json.dumps(bare, sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(canonical.encode()).hexdigest() != content.get("sha256"):
        raise Refused("the content was changed after it was sealed: its SHA-256 is not the one given.")


def _machine(content: dict[str, Any]) -> None:
    found = told(content)
    replay = Replay(found)
    replay.run()
    asked = matched(replay)
    _counts(content["counts"], found)
    _rounding(content, _chosen(replay, asked), found)


def _counts(value: Any, found: Told) -> None:
    heads = sum(len(layer.heads) for layer in found.layers)
    right = {
        "joint_indices": prod(d for layer in found.layers for d in layer.heads),
        "reached": len({tuple(one[:heads]) for one in found.configurations}),
        "configurations": len(found.configurations),
        "task_states": len({task for _, task, _ in found.matching}),
    }
    entries(value, "counts", *right)
    for key, count in right.items():
        if type(value[key]) is not int or value[key] != count:
            raise Refused(f"counts.{key} is {value[key]!r:.40}; there are {count}.")


def _chosen(replay: Replay, asked: Bools) -> list[tuple[str, Bools]]:
    """Where something is chosen among several, so that there is a margin."""
    found = replay.told
    columns = [
        (f"logits[{depth}][{head}]", replay.columns[depth][head] & (d > 1))
        for depth, layer in enumerate(found.layers)
        for head, d in enumerate(layer.heads)
    ]
    labels = ("labels", replay.steps & (len(found.labels) > 1))
    if found.question is None:
        return [*columns, labels]
    return [*columns, labels, ("answers", asked & (len(found.question["answers"]) > 1))]


def _rounding(content: dict[str, Any], chosen: list[tuple[str, Bools]], found: Told) -> None:
    """Margins and errors are in form, and those formats are proved in which every margin exceeds twice the error."""
    margins = _amounts(content["margins"], "margins", chosen, found)
    formats = content["rounding"]
    if not isinstance(formats, dict):
        raise Refused("rounding is not an object.")
    proved = []
    for format, bounds in formats.items():
        where = f"rounding.{format}"
        bare = {key: value for key, value in bounds.items() if key != "assumes"} if isinstance(bounds, dict) else bounds
        errors = _amounts(bare, where, chosen, found)
        names(bounds.get("assumes"), f"{where}.assumes", least=0)
        known = np.isfinite(margins)
        if (0.5 * margins[known] > errors[known]).all():
            proved.append(format)
    if content["proved"] != proved:
        raise Refused(f"proved is {content['proved']!r:.80}; by margins and errors it is {proved}.")


def _amounts(value: Any, where: str, chosen: list[tuple[str, Bools]], found: Told) -> NDArray[np.float64]:
    """All numbers in a row."""
    entries(value, where, "logits", "labels", "answers")
    layers = listed(value["logits"], f"{where}.logits", len(found.layers))
    for depth, (layer, heads) in enumerate(zip(found.layers, layers, strict=True)):
        listed(heads, f"{where}.logits[{depth}]", len(layer.heads))
    if found.question is None and value["answers"] is not None:
        raise Refused(f"{where}.answers are given, but there is no question.")
    parts = [head for heads in layers for head in heads] + [value["labels"], value["answers"]]
    held = [
        amounts(part, f"{where}.{name}", known).ravel()
        for part, (name, known) in zip(parts[: len(chosen)], chosen, strict=True)
    ]
    return np.concatenate(held)
