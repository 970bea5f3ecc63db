"""Small certificates of every kind, of machines that were built by hand."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from exactstate.automata import symmetric, tomita
from exactstate.certify import Certificate, QuestionMachine, Verdict, certify
from exactstate.extract import Extracted, RoundingErrors
from exactstate.extract.result import InputRegions
from tests.extract.building import side_by_side
from tests.extract.groups import S3, images_of, is_odd
from tests.extract.stories import stories


def make_key(path: Path) -> tuple[Path, Path]:
    """A private key of SSH at this path, and the public one beside it."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path], check=True)
    return path, path.with_name(f"{path.name}.pub")


def constant_errors(error: float, extracted: Extracted) -> RoundingErrors:
    """Rounding errors that are the same everywhere."""
    answers = None if extracted.answer_ids is None else np.full(extracted.answer_ids.shape, error)
    return RoundingErrors(
        format="any", columns=tuple(np.full(layer.tables.shape, error) for layer in extracted.layers),
        labels=np.full(extracted.label_ids.shape, error), answers=answers, assumes=("arithmetic is what it is",),
        regions=extracted.regions,
    )  # fmt: skip


def s3() -> tuple[Extracted, Verdict]:
    """The image of point 0 and the sign; every head has an index that is never used."""
    machine = symmetric(3)
    state = {(image[0], int(is_odd(image))): q for q, image in enumerate(images_of(machine, S3))}
    heads = [np.array([(*letter, 0) for letter in S3]), np.array([[1, 0, 1], [1, 0, 2]])]
    cascade = side_by_side(heads, lambda seen: state[seen[1]], labels=6)
    found = cascade.read(symbols=machine.symbols)
    return found, certify(found, machine)


def tomita4() -> tuple[Extracted, Verdict]:
    """Trained on outputs: whether a word of Tomita's fourth language may stand; with a head that never moves."""
    machine = tomita(4)
    cascade = side_by_side(
        [machine.tables, np.array([[0], [0]])], lambda seen: int(machine.readout[seen[1][0]]), labels=2
    )
    found = cascade.read(symbols=machine.symbols)
    return found, certify(found, machine, labels="outputs")


def story(people: int = 2) -> tuple[Extracted, Verdict]:
    """Two layers, a convolution, a grammar and a question."""
    story_task, cascade = stories(people)
    found = cascade.read(symbols=story_task.machine.symbols, grammar=story_task.grammar)
    assert story_task.question is not None
    question = QuestionMachine.at_end(story_task.question, story_task.machine, story_task.grammar)
    return found, certify(found, story_task.machine, question=question)


def regions() -> tuple[Extracted, Verdict]:
    """Tomita's fourth language again, where symbols are boxes of inputs."""
    found, _ = tomita4()
    boxes = InputRegions(found.symbols, np.array([[0.5, -1.0], [0.25, 3.0]]), np.array([1.5, 2.25]), "linf", "float32")
    found = replace(found, regions=boxes)
    return found, certify(found, tomita(4), labels="outputs")


MAKERS = {"S3": s3, "Tomita4": tomita4, "TSO2": story, "regions": regions}


@lru_cache(maxsize=8)
def _made(name: str) -> Certificate:
    found, verdict = MAKERS[name]()
    # margins are 4 everywhere
    rounding = {
        "float32": constant_errors(1e-5, found),
        "bfloat16": constant_errors(2.0, found),
        "float16": constant_errors(1.9, found),
    }
    return Certificate.of(found, verdict, name=name, rounding=rounding)


def certificate(name: str) -> dict[str, Any]:
    """The content of one, to do anything with."""
    import copy

    return copy.deepcopy(_made(name).content)
