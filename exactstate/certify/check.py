"""Check a certificate. This one file needs Python and NumPy and works alone:

    python -I check.py certificate.json [more.json ...] [--json]

Exit code 0: every certificate is valid. 1: one is not, with the reason. 2: a file is no certificate, or the call is
wrong. `FORMAT.md` beside this file describes every entry.

A certificate holds the transition tables that were extracted from a network, the configurations that input words reach,
the label that is read out at every step, and the target machine. The check is made in this order:

1. Reading: the file is JSON without repeated keys, of a format and version that are known here.
2. Seal: the SHA-256 of the content is the one given.
3. Form: every entry has its type, length and range; nothing is missing and nothing is added.
4. Replay: the tables lead from every listed configuration, by every symbol that the grammar permits, to a listed
   configuration. All of them are reached, all table entries are used, equal inputs and indices have equal labels.
5. Product walk: the pairs of a configuration and a target state contain the initial pair and are closed under every
   permitted symbol. At every pair the label read out is the target's, and so is the answer where one is asked for. By
   induction on the length, the output after every word of any length equals the target's.
6. Counts: they are those of the tables.
7. Rounding: a number format is known here, no error bound is below what one rounding in it can cost, and the format is
   in `proved` exactly when every margin is more than twice the error bound beside it.
8. Regions, where symbols are regions of inputs: prototypes and radii are finite numbers, and no two regions overlap.

Trusted: Python, NumPy and this file. Nothing of the program that wrote the certificate is used.

Established is that the file is consistent: its machine computes its target. Not established: which weights the file is
about, and which task the target is. Names, margins, error bounds and the digest of the weights come from elsewhere, and
anyone can compute the seal. `exactstate check FILE --weights RUN --against TASK` establishes both.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT, VERSION = "exactstate-certificate", 1
KEYS = (
    "format", "version", "name", "made", "weights", "evaluated", "symbols", "target", "grammar", "question", "reach",
    "layers", "configurations", "readout", "replies", "matching", "counts", "margins", "rounding", "proved", "sha256",
)  # fmt: skip
OPTIONAL_KEYS = ("regions",)
MAX_REACH, MAX_INDICES = 1024, 1 << 31
MAX_REGIONS, MAX_COORDINATES = 1024, 1 << 20
NORMS = {"linf": "in every coordinate", "l2": "in Euclidean distance"}
"""How far an input is from a prototype, in words."""
SIGNIFICAND_BITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
"""Of the formats that bounds may be about; the unit roundoff is 2 to the power of minus that."""

Rows = list[list[int]]
Numbers = dict[tuple[int, ...], int]
"""The position of every row in its list."""
Bools = NDArray[np.bool_]


class Unreadable(ValueError):
    """The file is not a certificate: where, and why."""

    def __init__(self, path: object, reason: str, line: int | None = None) -> None:
        super().__init__(f"{path}: {reason}" if line is None else f"{path}, line {line}: {reason}")
        self.path, self.reason, self.line = path, reason, line


class Refused(Exception):
    """The reason why a certificate is not valid."""


# 1. Reading


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a certificate file; `Unreadable` if it is not a certificate."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise Unreadable(path, "there is no such file." if missing else f"{error.strerror}.".lower()) from None
    return read_bytes(data, path)


def read_bytes(data: bytes, path: object = "certificate") -> dict[str, Any]:
    """The same of the bytes of a file; its name is for errors."""
    try:
        content = json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise Unreadable(path, "this is not UTF-8 text.") from None
    except json.JSONDecodeError as error:
        what = f"{error.msg.lower().removesuffix(' at')} at column {error.colno}"
        raise Unreadable(path, f"this is not JSON: {what}.", error.lineno) from None
    except RecursionError:
        raise Unreadable(path, "lists are nested too deep for a certificate.") from None
    except ValueError as error:
        raise Unreadable(path, f"{error}.") from None
    try:
        check_format(content)
    except Refused as reason:
        raise Unreadable(path, str(reason)) from None
    return dict(content)


def check_format(content: Any) -> None:
    found = content.get("format") if isinstance(content, dict) else None
    if isinstance(found, str) and found != FORMAT and found.endswith("-certificate"):
        raise Refused(f'the format is {shown(found)}, of another program or an older version; wanted "{FORMAT}".')
    if found != FORMAT:
        raise Refused(f'wanted a JSON object with "format": "{FORMAT}"; this is some other JSON.')
    if type(content.get("version")) is not int or content["version"] != VERSION:
        raise Refused(f"this is version {content.get('version')!r:.20}; this program reads version {VERSION}.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError(f"the key {repeated([key for key, _ in pairs])!r:.60} occurs twice")
    return entries


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


# 2. Seal


def check_seal(content: dict[str, Any]) -> None:
    try:
        bare = {key: value for key, value in content.items() if key != "sha256"}
        canonical = json.dumps(bare, sort_keys=True, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise Refused(f"the content cannot be written as JSON: {error}.") from None
    if hashlib.sha256(canonical).hexdigest() != content.get("sha256"):
        raise Refused("the content was changed after it was sealed: its SHA-256 is not the one given.")


# 3. Form: helpers that return a value of the right type, length and range, or raise `Refused` with its place


def fields(value: object, where: str, *keys: str) -> dict[str, Any]:
    """An object with exactly these keys."""
    if not isinstance(value, dict):
        raise Refused(f"{where} is {shown(value)}; wanted an object.")
    for key in keys:
        if key not in value:
            raise Refused(f"{where} has no entry {key!r}.")
    for key in value:
        if key not in keys:
            raise Refused(f"{where} has an entry {key!r:.60} that does not belong there.")
    return value


def items(value: object, where: str, count: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (count is not None and len(value) != count):
        raise Refused(f"{where} is {shown(value)}; wanted a list{'' if count is None else f' of {count}'}.")
    return value


def string(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise Refused(f"{where} is {shown(value)}; wanted a string.")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise Refused(f"{where} is {shown(value)}, which has half of a surrogate pair; wanted Unicode text.")
    return value


def names(value: object, where: str, *, least: int = 1) -> list[str]:
    """Distinct strings."""
    found = [string(name, f"{where}[{i}]") for i, name in enumerate(items(value, where))]
    if len(found) < least:
        raise Refused(f"{where} is empty.")
    if len(set(found)) < len(found):
        raise Refused(f"{where} holds {repeated(found)!r:.60} twice.")
    return found


def repeated(found: list[str]) -> str:
    """The first string that occurs again."""
    seen: set[str] = set()
    return next(name for name in found if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def integer(value: object, where: str, allowed: range) -> int:
    # bool is a subclass of int, and true is not a number
    if type(value) is not int or value not in allowed:
        raise Refused(f"{where} is {shown(value)}; wanted an integer from {allowed.start} to {allowed.stop - 1}.")
    return value


def integers(value: object, where: str, allowed: Sequence[range]) -> list[int]:
    """A list with one integer from each range."""
    found = items(value, where, len(allowed))
    for i, (entry, each) in enumerate(zip(found, allowed, strict=True)):
        if type(entry) is not int or entry not in each:
            integer(entry, f"{where}[{i}]", each)
    return found


def rows(value: object, where: str, count: int | None, allowed: Sequence[range]) -> Rows:
    """Lists with one integer from each range; at least one list."""
    if value == [] and count is None:
        raise Refused(f"{where} is empty.")
    return [integers(row, f"{where}[{i}]", allowed) for i, row in enumerate(items(value, where, count))]


def numbered(found: Rows, where: str) -> Numbers:
    """The position of every row; none occurs twice."""
    numbers = {tuple(row): i for i, row in enumerate(found)}
    if len(numbers) < len(found):
        raise Refused(f"{where}[{next(i for i, row in enumerate(found) if numbers[tuple(row)] != i)}] occurs twice.")
    return numbers


def shown(value: object) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 1024:  # Python refuses to write integers of many digits
        return f"an integer of {value.bit_length():,} bits"
    return "an object" if isinstance(value, dict) else f"{value!r:.60}"


def printable(text: object) -> str:
    """Text for a terminal: control and formatting characters are escaped, so that a name cannot act as a command."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


# 3. Form: the parts of a certificate, with tables indexed [symbol][state]


@dataclass(frozen=True)
class Parts:
    """The entries of a certificate that is in form: every number is in range. Whether they agree is checked later."""

    symbols: list[str]
    target: dict[str, Any]
    labels: list[str]
    wanted: Rows
    """[symbol][target state]: the correct label."""
    grammar: dict[str, Any]
    """As in the file; without a grammar one state, in which every symbol is permitted."""
    question: dict[str, Any]
    """As in the file; without a question one state, in which nothing is asked, and no answers."""
    reach: int
    layers: list[dict[str, Any]]
    configurations: Rows
    """Indices of all heads, the last reach - 1 inputs of the top layer, the state of the grammar."""
    readout: Rows
    """For every configuration the label at each permitted symbol."""
    matching: Rows
    """Configuration, target state, state of the question."""
    replies: Rows
    """For every row of the matching the answers where one is asked for."""
    permitted: list[list[tuple[int, int]]]
    """For every state of the grammar the permitted symbols, and the states that they lead to."""


def parts_of(content: dict[str, Any]) -> Parts:
    check_format(content)
    fields(content, "the certificate", *KEYS, *(key for key in OPTIONAL_KEYS if key in content))
    _origin(content)
    symbols = names(content["symbols"], "symbols")
    A = len(symbols)
    labels, wanted = _target(target := content["target"], A)
    n, grammar = len(target["states"]), _grammar(content["grammar"], A)
    question = _question(content["question"], A, n)
    answers = [range(len(question["answers"]))]
    reach = integer(content["reach"], "reach", range(1, MAX_REACH))
    layers = _layers(content["layers"], A, reach)
    _margin_sizes(content["margins"], A, layers)
    allowed = [range(d) for layer in layers for d in layer["heads"]]
    allowed += [range(-1, len(layers[-1]["inputs"]))] * (reach - 1)
    allowed += [range(len(grammar["refused"]))] if content["grammar"] is not None else []
    configurations = rows(content["configurations"], "configurations", None, allowed)
    if content["grammar"] is None:
        configurations = [[*row, 0] for row in configurations]
    allowed = [range(len(configurations)), range(n), *([range(len(question["tables"][0]))] if answers[0] else [])]
    matching = rows(content["matching"], "matching", None, allowed)
    if content["question"] is None:
        matching = [[*row, 0] for row in matching]
        if content["replies"] is not None:
            raise Refused("replies are given, but there is no question.")
    replies = [[]] * len(matching) if content["question"] is None else items(content["replies"], "replies")
    readout = items(content["readout"], "readout", len(configurations))
    permitted = _permitted(grammar)
    for i, row in enumerate(readout):
        integers(row, f"readout[{i}]", [range(len(labels))] * len(permitted[configurations[i][-1]]))
    for i, row in enumerate(items(replies, "replies", len(matching))):
        integers(row, f"replies[{i}]", answers * len(items(row, f"replies[{i}]")))
    return Parts(
        symbols=symbols, target=target, labels=labels, wanted=wanted, grammar=grammar, question=question, reach=reach,
        layers=layers, configurations=configurations, readout=readout, matching=matching, replies=replies,
        permitted=permitted,
    )  # fmt: skip


def _origin(content: dict[str, Any]) -> None:
    string(content["name"], "name")
    for key, version in fields(content["made"], "made", "exactstate", "python", "numpy").items():
        string(version, f"made.{key}")
    for key in ("weights", "sha256"):
        if not re.fullmatch("[0-9a-f]{64}", string(content[key], key)):
            raise Refused(f"{key} is not a SHA-256 in 64 hexadecimal digits.")
    if content["evaluated"] not in ("float64", "float32"):
        raise Refused(f"evaluated is {shown(content['evaluated'])}; wanted 'float64' or 'float32'.")


def _target(value: Any, A: int) -> tuple[list[str], Rows]:
    """(labels, the correct label for every symbol and state)."""
    by_output = isinstance(value, dict) and value.get("says") == "outputs"
    fields(value, "target", "says", "states", "start", "tables", *(("outputs", "readout") if by_output else ()))
    n = len(names(value["states"], "target.states"))
    integer(value["start"], "target.start", range(n))
    tables = rows(value["tables"], "target.tables", A, [range(n)] * n)
    if by_output:
        outputs = names(value["outputs"], "target.outputs")
        return outputs, rows(value["readout"], "target.readout", A, [range(len(outputs))] * n)
    if value["says"] != "states":
        raise Refused(f"target.says is {shown(value['says'])}; wanted 'states' or 'outputs'.")
    return value["states"], tables


def _grammar(value: Any, A: int) -> dict[str, Any]:
    if value is None:
        return {"start": 0, "tables": [[0]] * A, "refused": [0]}
    fields(value, "grammar", "places", "start", "tables", "refused")
    g = len(names(value["places"], "grammar.places"))
    integer(value["start"], "grammar.start", range(g))
    rows(value["tables"], "grammar.tables", A, [range(g)] * g)
    integers(value["refused"], "grammar.refused", [range(2)] * g)
    return value


def _permitted(grammar: dict[str, Any]) -> list[list[tuple[int, int]]]:
    tables, refused = grammar["tables"], grammar["refused"]
    return [
        [(symbol, table[place]) for symbol, table in enumerate(tables) if not refused[table[place]]]
        for place in range(len(refused))
    ]


def _question(value: Any, A: int, n: int) -> dict[str, Any]:
    if value is None:
        return {"answers": [], "start": 0, "tables": [[0]] * A, "asked": [[-1]] * A, "right": [[0]] * n}
    fields(value, "question", "answers", "start", "tables", "asked", "right")
    answers = names(value["answers"], "question.answers")
    z = len(items(items(value["tables"], "question.tables", A)[0], "question.tables[0]"))
    asked = len(items(items(value["right"], "question.right", n)[0], "question.right[0]"))
    integer(value["start"], "question.start", range(z))
    rows(value["tables"], "question.tables", A, [range(z)] * z)
    rows(value["asked"], "question.asked", A, [range(-1, asked)] * z)
    # one more than there are answers: none is correct
    rows(value["right"], "question.right", n, [range(len(answers) + 1)] * asked)
    return value


def _layers(value: Any, A: int, reach: int) -> list[dict[str, Any]]:
    sizes = [A]  # an input is a symbol or, above the first layer, the input and the indices of the layer below
    for number, layer in enumerate(items(value, "layers")):
        where = f"layers[{number}]"
        fields(layer, where, "heads", "start", "inputs", "windows", "tables")
        heads = items(layer["heads"], f"{where}.heads")
        integers(heads, f"{where}.heads", [range(1, MAX_INDICES)] * len(heads))
        if not heads:
            raise Refused(f"{where}.heads is empty.")
        integers(layer["start"], f"{where}.start", [range(d) for d in heads])
        inputs = rows(layer["inputs"], f"{where}.inputs", None, [range(size) for size in sizes])
        if not number and inputs != [[symbol] for symbol in range(A)]:
            raise Refused(f"{where}.inputs are not the {A} symbols in order.")
        windows = rows(layer["windows"], f"{where}.windows", None, [range(-1, len(inputs))] * reach)
        for head, table in enumerate(items(layer["tables"], f"{where}.tables", len(heads))):
            d, place = heads[head], f"{where}.tables[{head}]"
            items(items(table, place, len(windows))[0], f"{place}[0]", d)  # before anything of that size is made
            rows(table, place, len(windows), [range(-1, d)] * d)
        sizes = [len(inputs), *heads]
    if not value:
        raise Refused("layers is empty.")
    return value


def _margin_sizes(value: Any, A: int, layers: list[dict[str, Any]]) -> None:
    """There is a margin for every symbol and index, so what is computed of them is no larger than the file."""
    logits = items(fields(value, "margins", "logits", "labels", "answers")["logits"], "margins.logits", len(layers))
    for depth, (layer, heads) in enumerate(zip(layers, logits, strict=True)):
        for head, of_head in enumerate(items(heads, f"margins.logits[{depth}]", len(layer["heads"]))):
            where = f"margins.logits[{depth}][{head}]"
            for a, row in enumerate(items(of_head, where, A)):
                items(row, f"{where}[{a}]", layer["heads"][head])


# 4. Replay

Step = tuple[int, int, tuple[int, ...]]
"""A symbol, the configuration it leads to, and what the read-out depends on: the input of the top layer and the indices
that its heads moved to."""


class Replay:
    """The machine of the certificate, run by every permitted symbol from every listed configuration."""

    def __init__(self, parts: Parts) -> None:
        self.parts, A = parts, len(parts.symbols)
        self.configuration_number = numbered(parts.configurations, "configurations")
        self.input_number, self.window_number = (
            [numbered(layer[kind], f"layers[{depth}].{kind}") for depth, layer in enumerate(parts.layers)]
            for kind in ("inputs", "windows")
        )
        self.read = np.zeros(A, bool)
        """A: whether this symbol is read in any step."""
        self.moved = [[np.zeros((A, d), bool) for d in layer["heads"]] for layer in parts.layers]
        """layer, head: A d, whether this symbol is read at this index."""
        self.used = [[np.zeros((len(known), d), bool) for d in layer["heads"]]
                     for known, layer in zip(self.window_number, parts.layers, strict=True)]  # fmt: skip
        """layer, head: whether this table entry is used."""
        self.used_inputs: list[set[int]] = [set() for _ in parts.layers]
        self.label_of: dict[tuple[int, ...], int] = {}
        indices = [k for layer in parts.layers for k in layer["start"]]
        start = [*indices, *[-1] * (parts.reach - 1), parts.grammar["start"]]
        if parts.configurations[0] != start:
            raise Refused(f"configurations[0] is {parts.configurations[0]}; the initial configuration is {start}.")
        self.steps = [list(self._steps(number)) for number in range(len(parts.configurations))]
        """For every configuration."""
        all_reached([[after for _, after, _ in steps] for steps in self.steps], "configurations")
        self._all_used()

    def _steps(self, number: int) -> Iterator[Step]:
        parts, configuration = self.parts, self.parts.configurations[number]
        labels, memories = iter(parts.readout[number]), self._memories(configuration)
        for symbol, place in parts.permitted[configuration[-1]]:
            row, final = self._step(number, symbol, memories)
            after = self.configuration_number.get((*row, place))
            if after is None:
                raise Refused(f"{self._way(number, symbol)} {[*row, place]}, which is not among configurations.")
            label = next(labels)
            if self.label_of.setdefault(final, label) != label:
                raise Refused(
                    f"readout[{number}]: {parts.labels[label]!r} at the symbol {parts.symbols[symbol]!r}, but "
                    f"{parts.labels[self.label_of[final]]!r} elsewhere at the same input and indices."
                )
            self.read[symbol] = True
            yield symbol, after, final

    def _step(self, number: int, symbol: int, memories: Rows) -> tuple[list[int], tuple[int, ...]]:
        """(the configuration after the symbol without the grammar's state, what the read-out depends on)."""
        indices = iter(self.parts.configurations[number])
        after, newest = list[int](), 0
        key: tuple[int, ...] = (symbol,)
        for depth, layer in enumerate(self.parts.layers):
            if key not in self.input_number[depth]:
                raise Refused(f"{self._way(number, symbol)} the input {key}, not among layers[{depth}].inputs.")
            newest = self.input_number[depth][key]
            self.used_inputs[depth].add(newest)
            key = (*memories[depth], newest)
            if key not in self.window_number[depth]:
                raise Refused(f"{self._way(number, symbol)} the window {key}, not among layers[{depth}].windows.")
            window, moved = self.window_number[depth][key], []
            # the indices of the layers above remain
            for head, (table, k) in enumerate(zip(layer["tables"], indices, strict=False)):
                if table[window][k] < 0:
                    raise Refused(f"layers[{depth}].tables[{head}][{window}][{k}] is -1, but it is used.")
                self.used[depth][head][window, k] = self.moved[depth][head][symbol, k] = True
                moved.append(table[window][k])
            after += moved
            key = (newest, *moved)
        return [*after, *[*memories[-1], newest][1:]], key

    def _memories(self, configuration: list[int]) -> Rows:
        """The last inputs of every layer: those of the top layer, and what belongs to them below."""
        memories = [configuration[-self.parts.reach : -1]]
        for layer in self.parts.layers[:0:-1]:
            memories.append([layer["inputs"][last][0] if last >= 0 else -1 for last in memories[-1]])
        return memories[::-1]

    def _way(self, number: int, symbol: int) -> str:
        return f"configurations[{number}] and the symbol {self.parts.symbols[symbol]!r} lead to"

    def _all_used(self) -> None:
        for depth, layer in enumerate(self.parts.layers):
            where = f"layers[{depth}]"
            for i in range(len(layer["inputs"]) if depth else 0):  # the first layer lists every symbol
                if i not in self.used_inputs[depth]:
                    raise Refused(f"{where}.inputs[{i}] is never used.")
            for i in np.flatnonzero(~self.used[depth][0].any(axis=1)).tolist():
                raise Refused(f"{where}.windows[{i}] is never used.")
            for head, (table, used) in enumerate(zip(layer["tables"], self.used[depth], strict=True)):
                for i, k in np.argwhere(~used & (np.array(table) >= 0)).tolist():
                    raise Refused(f"{where}.tables[{head}][{i}][{k}] is never used; wanted -1.")


def all_reached(successors: Rows, where: str) -> None:
    """Refuse a list with an entry that no word leads to."""
    reached, queue = {0}, [0]
    for one in queue:
        fresh = dict.fromkeys(then for then in successors[one] if then not in reached)
        reached.update(fresh)
        queue += fresh
    if len(reached) < len(successors):
        raise Refused(f"{where}[{next(i for i in range(len(successors)) if i not in reached)}] is never reached.")


# 5. Product walk


def walk_product(parts: Parts, replay: Replay) -> Bools:
    """Refuse a matching that does not hold; returns for every symbol (A) whether an answer is asked for."""
    target, question, pair_number = parts.target, parts.question, numbered(parts.matching, "matching")
    start = [0, target["start"], question["start"]]
    if parts.matching[0] != start:
        raise Refused(f"matching[0] is {parts.matching[0]}; the initial states are {start}.")
    asked, answer_of = np.zeros(len(parts.symbols), bool), dict[tuple[int, ...], int]()
    successors: Rows = []
    for i, (configuration, state, z) in enumerate(parts.matching):
        successors.append([])
        answers: list[int] = []
        for (symbol, after, final), label in zip(
            replay.steps[configuration], parts.readout[configuration], strict=True
        ):
            pair = (after, target["tables"][symbol][state], question["tables"][symbol][z])
            if pair not in pair_number:
                way = f"matching[{i}] and the symbol {parts.symbols[symbol]!r} lead to {list(pair)}"
                raise Refused(f"{way}, which is not among matching.")
            successors[-1].append(pair_number[pair])
            if label != (wanted := parts.wanted[symbol][state]):
                raise Refused(
                    f"readout[{configuration}]: {parts.labels[label]!r} at the symbol {parts.symbols[symbol]!r}; "
                    f"the target, in the state of matching[{i}], outputs {parts.labels[wanted]!r}."
                )
            if (item := question["asked"][symbol][z]) >= 0:
                asked[symbol] = True
                answers.append(question["right"][pair[1]][item])
                if answer_of.setdefault(final, answers[-1]) != answers[-1]:
                    raise Refused(f"matching[{i}]: equal inputs and indices need two different answers.")
        if parts.replies[i] != answers:
            raise Refused(f"replies[{i}] is {parts.replies[i]}; the correct answers are {answers}.")
    all_reached(successors, "matching")
    return asked


# 6. Counts


def check_counts(value: Any, parts: Parts) -> None:
    sizes = [d for layer in parts.layers for d in layer["heads"]]
    counts = {
        "joint_indices": math.prod(sizes),
        "reached": len({tuple(row[: len(sizes)]) for row in parts.configurations}),
        "configurations": len(parts.configurations),
        "task_states": len({state for _, state, _ in parts.matching}),
    }
    fields(value, "counts", *counts)
    for key, count in counts.items():
        if type(value[key]) is not int or value[key] != count:
            raise Refused(f"counts.{key} is {shown(value[key])}; there are {shown(count)}.")


# 7. Margins against rounding


def check_rounding(content: dict[str, Any], parts: Parts, replay: Replay, asked: Bools) -> None:
    """Margins and errors are in form, and `proved` lists the formats in which every margin exceeds twice the error."""
    answers = parts.question["answers"]
    exist = {  # there is a margin where one of several is chosen
        "logits": [[(m & (m.shape[1] > 1)).tolist() for m in moved] for moved in replay.moved],
        "labels": (replay.read & (len(parts.labels) > 1)).tolist(),
        "answers": (asked & (len(answers) > 1)).tolist() if answers else False,
    }
    margins = np.array(amounts(content["margins"], "margins", exist))
    if not isinstance(content["rounding"], dict):
        raise Refused(f"rounding is {shown(content['rounding'])}; wanted an object.")
    proved = []
    for format, bounds in content["rounding"].items():
        if format not in SIGNIFICAND_BITS:
            raise Refused(f"rounding is about {format!r:.60}; known formats are {', '.join(SIGNIFICAND_BITS)}.")
        where = f"rounding.{format}"
        names(fields(bounds, where, "assumes", *exist)["assumes"], f"{where}.assumes", least=0)
        errors = np.array(amounts({key: bounds[key] for key in exist}, where, exist))
        # of two logits that differ by a margin, one is at least half of it: rounding it once may cost this much
        least = 2.0 ** -SIGNIFICAND_BITS[format] * 0.5 * margins
        for error, needed in zip(errors[errors < least], least[errors < least], strict=True):
            raise Refused(f"{where} has a bound of {error:.3g}; rounding once may cost {needed:.3g}.")
        if (0.5 * margins > errors).all():
            proved.append(format)
    if content["proved"] != proved:
        raise Refused(f"proved is {content['proved']!r:.80}; by margins and errors it is {proved}.")


def amounts(value: Any, where: str, exist: Any) -> list[float]:
    """All numbers of nested objects and lists: one that is not negative where `exist` is true, null elsewhere."""
    if isinstance(exist, dict):
        fields(value, where, *exist)
        return [number for key, each in exist.items() for number in amounts(value[key], f"{where}.{key}", each)]
    if isinstance(exist, list):
        pairs = enumerate(zip(items(value, where, len(exist)), exist, strict=True))
        return [number for i, (entry, each) in pairs for number in amounts(entry, f"{where}[{i}]", each)]
    if not exist:
        if value is not None:
            raise Refused(f"{where} is {shown(value)}; wanted null, because nothing is chosen there.")
        return []
    if type(value) is not float or not 0 <= value < math.inf:
        raise Refused(f"{where} is {shown(value)}; wanted a decimal number that is not negative.")
    return [value]


# 8. Regions of inputs


def check_regions(value: Any, symbols: list[str]) -> None:
    """Every symbol has a prototype and a radius, and no input is in the regions of two."""
    A = len(symbols)
    fields(value, "regions", "norm", "centers", "radii")
    if value["norm"] not in tuple(NORMS):
        raise Refused(f"regions.norm is {shown(value['norm'])}; wanted {' or '.join(map(repr, NORMS))}.")
    rows = items(value["centers"], "regions.centers", A)
    n = len(items(rows[0], "regions.centers[0]"))
    if A > MAX_REGIONS or not 0 < A * n <= MAX_COORDINATES:
        most = f"at most {MAX_REGIONS:,} prototypes and {MAX_COORDINATES:,} coordinates in all"
        raise Refused(f"regions.centers has {A:,} prototypes of {n:,} coordinates; wanted {most}, and at least one.")
    for a, row in enumerate(rows):
        for i, number in enumerate(items(row, f"regions.centers[{a}]", n)):
            if type(number) is not float or not math.isfinite(number):
                raise Refused(f"regions.centers[{a}][{i}] is {shown(number)}; wanted a finite decimal number.")
    for a, radius in enumerate(items(value["radii"], "regions.radii", A)):
        if type(radius) is not float or not 0 <= radius < math.inf:
            raise Refused(f"regions.radii[{a}] is {shown(radius)}; wanted a finite decimal number, not negative.")
    centers, radii = np.array(rows), np.array(value["radii"])
    for a in range(A - 1):
        touching = np.flatnonzero(distances(centers[a + 1 :], centers[a], value["norm"]) <= radii[a] + radii[a + 1 :])
        if len(touching):
            pair = f"{symbols[a]!r:.60} and {symbols[a + 1 + int(touching[0])]!r:.60}"
            raise Refused(f"the regions of {pair} overlap: an input could be read as either.")


def distances(points: NDArray[np.float64], center: NDArray[np.float64], norm: str) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        apart = np.abs(points - center)
        largest = apart.max(-1)
        if norm == "linf":
            return largest
        scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)  # squares could overflow or vanish
        return scale * np.sqrt(((apart / scale[:, None]) ** 2).sum(-1))


# The check as a whole


@dataclass(frozen=True)
class Report:
    """The result of a check. True if the certificate is valid: consistent, as `check.py` alone can tell."""

    findings: tuple[str, ...]
    """The reasons to refuse it."""

    def __bool__(self) -> bool:
        return not self.findings


def check(certificate: str | os.PathLike[str] | Mapping[str, Any]) -> Report:
    """Check a certificate, given as a file or as its content. A file that is not a certificate raises `Unreadable`."""
    content = dict(certificate) if isinstance(certificate, Mapping) else read(certificate)
    findings = []
    for part in (check_seal, check_machine):
        try:
            part(content)
        except Refused as reason:
            findings.append(str(reason))
        except RecursionError:
            findings.append("lists are nested too deep.")
    return Report(tuple(findings))


def check_machine(content: dict[str, Any]) -> None:
    parts = parts_of(content)
    replay = Replay(parts)
    asked = walk_product(parts, replay)
    check_counts(content["counts"], parts)
    check_rounding(content, parts, replay, asked)
    if "regions" in content:
        check_regions(content["regions"], parts.symbols)


# The report


def answers_alone(content: Mapping[str, Any]) -> bool:
    """Whether only answers are compared: every word has the same output."""
    return content["question"] is not None and len(content["target"].get("outputs", ())) == 1


def summary(content: dict[str, Any]) -> Iterator[str]:
    """What a valid certificate states, line by line."""
    counts, target, layers = content["counts"], content["target"], content["layers"]
    name = printable(content["name"]) or "a model"
    labels = "answers alone" if answers_alone(content) else target["says"]
    yield f"{name}: compared with a target of {len(target['states']):,} states; the labels are its {labels}"
    yield f"weights: SHA-256 {content['weights']}"
    convolved = f", convolutions over {content['reach']} symbols" if content["reach"] > 1 else ""
    yield f"heads: {' | '.join(' '.join(map(str, layer['heads'])) for layer in layers)}{convolved}"
    several = f" in {counts['configurations']:,} configurations" if counts["configurations"] > counts["reached"] else ""
    fit = "some configurations represent several equivalent target states"
    if counts["configurations"] == len(content["matching"]):
        once = counts["configurations"] == counts["task_states"]
        fit = "one configuration for each" if once else "some target states have several configurations"
    reached = f"{counts['reached']:,} of {counts['joint_indices']:,} joint indices reached{several}"
    yield f"{reached}, for {counts['task_states']:,} target states: {fit}"
    words = "every word" if content["grammar"] is None else "every word of the grammar"
    answers = "" if content["question"] is None else ", and so does every answer"
    if answers_alone(content):
        yield f"every answer in {words} of any length equals the target's; states and outputs are not compared"
    else:
        yield f"the output after {words} of any length equals the target's{answers}"
    columns = [
        (margin, f"layer {depth}, " if len(layers) > 1 else "", head, content["symbols"][a], k)
        for depth, heads in enumerate(content["margins"]["logits"])
        for head, table in enumerate(heads)
        for a, row in enumerate(table)
        for k, margin in enumerate(row)
        if margin is not None
    ]
    if columns:
        margin, layer, head, symbol, k = min(columns)
        yield f"weakest column: {layer}head {head}, symbol {symbol!r}, index {k}, margin {margin:.4g}"
    yield rounding_line(content)
    yield from region_sentences(content)


def rounding_line(content: dict[str, Any]) -> str:
    if not content["rounding"]:
        return f"rounding: no format was tried; logits were evaluated in {content['evaluated']}"
    others = [name for name in content["rounding"] if name not in content["proved"]]
    rest = f"; not proved in {', '.join(others)}" if others else ""
    if not content["proved"]:
        return f"rounding: proved to change nothing in no format{rest}"
    count = len({sentence for name in content["proved"] for sentence in content["rounding"][name]["assumes"]})
    given = f"arithmetic as in its {count} assumptions" if count else "any arithmetic, by its word"
    proved = f"rounding: proved to change nothing in {', '.join(content['proved'])}"
    return f"{proved}, given {given} and margins and bounds as in the file{rest}"


def region_sentences(content: Mapping[str, Any]) -> list[str]:
    """What is proved over the regions, in a sentence; none where symbols are not regions of inputs."""
    if "regions" not in content:
        return []
    radii, how = content["regions"]["radii"], NORMS[content["regions"]["norm"]]
    least, most = rounded_down(min(radii)), rounded_down(max(radii))
    within = f"differ from the prototypes by at most {least} {how}"
    if max(radii) == 0:
        within = "are the prototypes"
    elif least != most:
        within = f"differ from the prototypes by at most {least} to {most}, by symbol, {how}"
    words = "every sequence" if content["grammar"] is None else "every sequence of the grammar"
    if not content["proved"]:
        return [f"inputs that {within}: proved in no format"]
    proved = f"proved in {', '.join(content['proved'])}"
    return [f"correct on {words} of any length whose inputs {within}; {proved}"]


def rounded_down(radius: float) -> str:
    """With three digits."""
    return f"{float(Context(prec=3, rounding=ROUND_FLOOR).create_decimal_from_float(radius)):g}"


NOT_ESTABLISHED = (
    "not established: which weights it is about (exactstate check --weights), which task its target is (--against)"
)


def verdict_of(path: object, content: dict[str, Any], report: Report, established: Sequence[str] = ()) -> str:
    """The result for people; `established`: lines about what was found out beyond the consistency of the file."""
    lines = list(report.findings)
    if report:
        lines = [*summary(content), "established: the file is consistent: its machine computes its target"]
        lines += established or [NOT_ESTABLISHED]
    return "\n  ".join([f"{printable(path)}: {'valid' if report else 'not valid'}", *map(printable, lines)])


def row_of(path: object, content: dict[str, Any], report: Report) -> dict[str, Any]:
    """The result for programs."""
    about = {key: content[key] for key in ("name", "weights", "counts", "proved", "sha256")} if report else {}
    row = {"file": str(path), "valid": bool(report), "findings": list(report.findings)}
    claims = {"regions": region_sentences(content)[0]} if report and "regions" in content else {}
    return row | {"established": ["consistent"] if report else []} | about | claims


def main() -> int:
    parser = argparse.ArgumentParser(description="Check certificates that exactstate wrote.")
    parser.add_argument("files", nargs="+", metavar="CERTIFICATE")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    args = parser.parse_args()
    code, results = 0, []
    for path in args.files:
        try:
            content = read(path)
            results.append((path, content, check(content)))
            code = max(code, 0 if results[-1][2] else 1)
        except Unreadable as error:
            print(printable(error), file=sys.stderr)
            code = 2
    if args.json:
        print(json.dumps([row_of(*result) for result in results], indent=2))
    elif results:
        print("\n\n".join(verdict_of(*result) for result in results))
    return code


if __name__ == "__main__":
    sys.exit(main())
