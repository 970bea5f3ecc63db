"""`python -m paper.experiments.story_stream RUN`: every head of a stack along one story, as rows for a figure.

kind "story"  task, tokens, answer, said: what is read, what is right at its end, and what the network answers
kind "head"   layer, head, means (what it stands for, or null), indices, values (what each index means, or null)
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from detent import records
from detent.extract.interpret import meanings
from detent.nn import Backbone
from detent.tasks import Task
from detent.train import load_run, train
from detent.train.verify import extract_and_certify

LENGTH = 52
"""Tokens: ten sentences and two extra dots, as many as a page is wide."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m paper.experiments.story_stream", description=__doc__.splitlines()[0]
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run of TSO3, TSO4 or TSO5")
    parser.add_argument("--rows", type=Path, default=Path("results/tso_stream.jsonl"), metavar="FILE")
    parser.add_argument("--seed", type=int, default=2, help="names the story")
    asked = parser.parse_args()
    run = load_run(asked.run, extract=False)
    rows = stream_rows(run.model, run.task, asked.seed)
    asked.rows.unlink(missing_ok=True)
    for row in rows:
        records.append(asked.rows, {**row, "recipe": run.config.recipe, "seed": run.config.seed, **records.stamp()})


def trained_stream_rows() -> list[records.Row]:
    """The same of a stack that is taught on the spot, in half a minute."""
    run = train("TSO3")
    return stream_rows(run.model, run.task, 2)


def stream_rows(model: Backbone, task: Task, seed: int) -> list[records.Row]:
    """The rows of one story."""
    found, _ = extract_and_certify(model, task)
    story = task.sample(1, LENGTH, np.random.default_rng(seed))
    assert story.answers is not None
    tokens = [task.machine.symbols[token] for token in story.inputs[0].tolist()]
    machine, place = found.tables, 0
    visited = []
    for token in story.inputs[0].tolist():
        place = int(machine[token, place])
        visited.append(place)
    with torch.no_grad():
        h, _ = model.eval().hidden(torch.from_numpy(story.inputs.astype(np.int64)))
        said = int(model.answer_logits(h[:, -1]).argmax())
    rows: list[records.Row] = [
        {"kind": "story", "task": task.name, "tokens": tokens, "answer": found.answer_names[int(story.answers[0])],
         "said": found.answer_names[said]}
    ]  # fmt: skip
    registers = {one.name: [one.values[value] for value in one.of_state] for one in task.registers}
    heads = [(layer, head) for layer, sizes in enumerate(found.heads) for head in range(len(sizes))]
    for column, ((layer, head), meaning) in enumerate(
        zip(heads, meanings(found, registers), strict=True)
    ):  # fmt: skip
        indices = found.configurations[visited, column].tolist()
        values = None if meaning is None else [meaning.values[k] for k in indices]
        rows.append(
            {"kind": "head", "layer": layer, "head": head, "means": None if meaning is None else meaning.name,
             "indices": indices, "values": values}
        )  # fmt: skip
    return rows


if __name__ == "__main__":
    main()
