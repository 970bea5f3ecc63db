"""`stream_rows`: the heads of a trained stack along one story, with their interpretation."""

from __future__ import annotations

from pathlib import Path

from exactstate.train import Run
from paper.experiments.story_stream import stream_of_run, stream_rows


def test_stream_rows_follow_every_head(stack: Run) -> None:
    story, *heads = stream_rows(stack, 2)
    assert story["answer"] == story["predicted"]
    assert story["tokens"][-1] == "?"
    assert [head["means"] for head in heads] == [
        "the first name", "the first name, one symbol ago", "the symbol before, when it is asked for",
        "the holder of the ring", "the holder of the key",
    ]  # fmt: skip
    holder = {"ring": heads[3], "key": heads[4]}[story["tokens"][-2]]
    assert holder["values"][-1] == story["answer"]


def test_stream_of_run_loads_the_folder(stack: Run, stack_folder: Path) -> None:
    story, *heads = stream_of_run(stack_folder, 2)
    assert (story["run"], story["recipe"], story["seed"]) == (stack_folder.name, "distill", 42)
    assert [head["indices"] for head in heads] == [head["indices"] for head in stream_rows(stack, 2)[1:]]
