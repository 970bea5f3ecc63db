"""The front door: train, extract, certify, and a machine that runs on its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import exactstate
from exactstate.automata import distinguishing_word
from exactstate.errors import InvalidConfig
from exactstate.runtime import load

pytestmark = pytest.mark.usefixtures("one_thread")


def test_train_extract_certify_run(tmp_path):
    run = exactstate.train("S4", seed=42, recipe="induce", width=32)
    machine = exactstate.extract(run.model)
    verdict = exactstate.certify(machine, exactstate.task("S4").machine)
    assert verdict, verdict.explain()
    machine.save(tmp_path / "s4.json")
    again = load(tmp_path / "s4.json")
    assert again.heads is not None
    assert again.heads.sizes == run.heads
    fresh = exactstate.task("S4").sample(1, 500, np.random.default_rng(0))
    word, states = fresh.inputs[0], fresh.states[0]
    with torch.no_grad():
        said = run.model(torch.from_numpy(word.astype(np.int64))[None])[0].argmax(-1)[0]
    assert [int(name) for name in again.outputs(word)] == said.tolist() == states.tolist()
    assert machine.standalone.states[machine.run(word)] == str(states[-1])
    stream = machine.stream()
    for piece in np.array_split(word, 7):
        stream.push(piece)
    assert stream.position["state"] == machine.run(word)
    assert exactstate.certify(again, exactstate.task("S4").machine)
    with pytest.raises(InvalidConfig, match="heads"):
        exactstate.train("S4", recipe="induce", heads=[2, 2], width=32)


def test_extract_of_a_trained_model_takes_names(tmp_path):
    s3 = exactstate.task("S3").machine
    run = exactstate.train("S3", recipe="induce", width=32)
    machine = exactstate.extract(run.model, symbols=s3.symbols, labels=s3.states)
    assert machine.outputs(["(0 1)", "(0 1)", "(1 2)"]) == ["(0 1)", "e", "(1 2)"]
    machine.save(tmp_path / "s3.dot")
    assert distinguishing_word(exactstate.read_machine(tmp_path / "s3.dot"), s3) is None
