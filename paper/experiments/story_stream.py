"""The index of every head of a two-layer stack along one story, as rows for the figure `tso`.

kind "story"  task, tokens, answer, predicted: the story, the right answer at its end, and the network's answer
kind "head"   layer, head, means (its interpretation, or null), indices, values (interpretation of each index, or
              null)
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from exactstate.extract.interpret import meanings
from exactstate.records import Row
from exactstate.train import Run, load_run, train

LENGTH = 52
"""Tokens: ten sentences and two extra dots, which fills the width of a page."""
STORY = 2
"""The seed of the story."""


def trained_stream_rows() -> list[Row]:
    """The rows of a stack that is trained on the spot, in half a minute."""
    return stream_rows(train("TSO3"), STORY)


def stream_of_run(folder: Path, story: int) -> list[Row]:
    """The rows of the run in a folder."""
    run = load_run(folder)
    about = {"run": folder.name, "recipe": run.config.recipe, "seed": run.config.seed}
    return [{**row, **about} for row in stream_rows(run, story)]


def stream_rows(run: Run, story: int) -> list[Row]:
    """The rows of one story, drawn with this seed."""
    task, extracted = run.task, run.extracted
    sample = task.sample(1, LENGTH, np.random.default_rng(story))
    assert sample.answers is not None
    tokens = sample.inputs[0].tolist()
    place, visited = 0, []
    for token in tokens:
        place = int(extracted.tables[token, place])
        visited.append(place)
    with torch.no_grad():
        h, _ = run.model.eval().hidden(torch.from_numpy(sample.inputs.astype(np.int64)))
        predicted = int(run.model.answer_logits(h[:, -1]).argmax())
    rows: list[Row] = [{
        "kind": "story", "task": task.name, "story": story, "tokens": [task.machine.symbols[token] for token in tokens],
        "answer": extracted.answer_names[int(sample.answers[0])], "predicted": extracted.answer_names[predicted],
    }]  # fmt: skip
    heads = [(layer, head) for layer, sizes in enumerate(extracted.heads) for head in range(len(sizes))]
    registers = {one.name: [one.values[value] for value in one.of_state] for one in task.registers}
    for column, ((layer, head), meaning) in enumerate(zip(heads, meanings(extracted, registers), strict=True)):
        indices = extracted.configurations[visited, column].tolist()
        rows.append({
            "kind": "head", "layer": layer, "head": head, "means": None if meaning is None else meaning.name,
            "indices": indices, "values": None if meaning is None else [meaning.values[k] for k in indices],
        })  # fmt: skip
    return rows
