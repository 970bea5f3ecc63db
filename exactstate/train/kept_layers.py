"""Kept heads of layers, one above the other: a cascade; what each layer reads, and the codes that all of them are.

    B  words     L  their length     V  symbols     W  inputs of a layer     r  heads     d  indices of a head

Heads of the first layer read the symbol. Heads of a layer above read the symbol and the joint index of all heads below
before it: the pairs that words reach are its inputs. In a network (`codes_of_layers`) a layer also holds the indices of
its heads a symbol ago: the layer above reads them after the symbol.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.torch import save as to_bytes

from exactstate._types import MISSING, Ints
from exactstate.nn.heads import KeptHead, refined, run_tables
from exactstate.records import write_atomically
from exactstate.tasks import Task
from exactstate.train.codes import StateCodes, collect_rows, endless, pack_rows
from exactstate.train.registers import has_words

LONGEST = 80
"""Symbols of the words that show what a network is to do: in short words every transition is frequent."""


@dataclass(frozen=True, eq=False)
class KeptLayer:
    """Heads that read the same inputs."""

    inputs: Ints
    """W - 1: the numbers joint index below * V + symbol that words reach, ascending; input W - 1 is any other."""
    heads: tuple[KeptHead, ...]

    def to_json(self) -> dict[str, Any]:
        return {"inputs": self.inputs.tolist(), "heads": [head.to_json() for head in self.heads]}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> KeptLayer:
        """What `to_json` returned."""
        return cls(np.array(content["inputs"], np.int64), tuple(map(KeptHead.from_json, content["heads"])))


@dataclass(eq=False)
class KeptLayers:
    """Layers of kept heads, the lowest first."""

    symbols: int
    layers: list[KeptLayer] = field(default_factory=list)
    open: float = float("inf")
    """Nats of the label that they leave open."""

    @property
    def heads(self) -> list[KeptHead]:
        """Of all layers."""
        return [head for layer in self.layers for head in layer.heads]

    def groups(self, labels: int) -> Ints:
        """n: labels that the heads do not tell apart have the same number."""
        groups: Ints = np.zeros(labels, np.int64)
        for head in self.heads:
            groups = refined(groups, head.of_label)
        return groups

    def run(self, words: Ints) -> tuple[Ints, Ints]:
        """(the index of every head: B (L + 1) r, the joint index: B (L + 1)) before, between and after symbols."""
        joint = np.zeros((len(words), words.shape[1] + 1), np.int64)
        paths: list[Ints] = []
        for layer in self.layers:
            read = self.reads(words, joint, layer.inputs)
            for head in layer.heads:
                stay = np.where(head.tables == MISSING, np.arange(head.size), head.tables)
                paths.append(run_tables(stay, read, head.start))
                joint = joint * head.size + paths[-1]
        return np.stack(paths, axis=2) if paths else np.zeros((*joint.shape, 0), np.int64), joint

    def reads(self, words: Ints, joint: Ints, inputs: Ints) -> Ints:
        """B L: which input of a layer on top stands where."""
        pairs = joint[:, :-1] * self.symbols + words
        place = np.searchsorted(inputs, pairs).clip(max=len(inputs) - 1)
        return np.where(inputs[place] == pairs, place, len(inputs))

    def reached(self, words: Sequence[Ints]) -> Ints:
        """The inputs of a layer on top that these words have, ascending; the symbols alone where nothing is below."""
        if not self.layers:
            return np.arange(self.symbols)
        pairs = [self.run(part)[1][:, :-1] * self.symbols + part for part in words]
        return np.unique(np.concatenate([part.ravel() for part in pairs]))

    def save(self, path: Path, attempt: int) -> None:
        """Write them into a file."""
        content = {"open": self.open, "layers": [layer.to_json() for layer in self.layers]}
        write_atomically(path, to_bytes({}, {"attempt": str(attempt), "kept": json.dumps(content)}))

    def load(self, path: Path) -> None:
        """What `save` wrote."""
        with safe_open(path, framework="pt") as file:
            content = json.loads((file.metadata() or {})["kept"])
        self.open, self.layers = content["open"], [KeptLayer.from_json(layer) for layer in content["layers"]]


def codes_of_layers(kept: KeptLayers, task: Task, generator: np.random.Generator, *, batch: int = 256) -> StateCodes:
    """Codes of these layers; which indices are where, and which label and answer is there, is read from words.

    Every layer but the last holds its heads once more, a symbol late. Where words end in a question, the first layer
    has a head for what is asked.
    """
    lengths = [length for length in range(2, LONGEST + 1) if has_words(task, length)]
    ends = np.cumsum([0, *(len(layer.heads) for layer in kept.layers)])
    queries = 0 if task.question is None else task.question.n_answers

    def parts(values: Ints, late: Ints, query: Ints) -> Ints:
        """... r: of every layer now, late and query."""
        columns: list[Ints] = []
        for number, (begin, end) in enumerate(pairwise(ends)):
            columns.append(values[..., begin:end])
            if number + 1 < len(kept.layers):
                columns.append(late[..., begin:end])
            if number == 0 and queries:
                columns.append(query[..., None])
        return np.concatenate(columns, axis=-1)

    def read() -> Ints:
        words = task.sample(batch, int(generator.choice(lengths)), generator)
        inputs = words.inputs.astype(np.int64)
        now, _ = kept.run(inputs)
        late, query = np.concatenate([now[:, :1], now[:, :-1]], axis=1), np.zeros(now.shape[:2], np.int64)
        answers = np.full(inputs.shape, MISSING)
        if words.queries is not None and words.answers is not None:
            query[:, -1], answers[:, -1] = 1 + words.queries.astype(np.int64), words.answers
        paths = parts(now, late, query)
        last = np.concatenate([np.full((len(inputs), 1), MISSING), inputs[:, :-1]], axis=1)
        before, after = (part.reshape(-1, paths.shape[2]) for part in (paths[:, :-1], paths[:, 1:]))
        labels = words.states.astype(np.int64)
        return pack_rows(inputs.ravel(), before, after, labels.ravel(), answers.ravel(), last.ravel())

    def of_layers(values: Sequence[int], query: int) -> tuple[tuple[int, ...], ...]:
        late = (tuple(values[a:b]) * (2 if b < ends[-1] else 1) for a, b in pairwise(ends))
        first, *others = late
        return (first + (query,) * bool(queries), *others)

    sizes = of_layers([head.size for head in kept.heads], queries + 1)
    starts = of_layers([head.start for head in kept.heads], 0)
    return StateCodes(sizes, starts, collect_rows(endless(read)))
