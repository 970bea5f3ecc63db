"""Automata of languages against their texts, and the extraction of a model whose machine is written by hand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from exactstate import certify, extract, records
from exactstate.text import TextModel
from exactstate.text.memory import Machine
from paper.experiments import text_machines
from paper.experiments.text_languages import LANGUAGES

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", text_machines.AUTOMATA)
def test_target_reads_the_texts_of_its_language(name: str) -> None:
    machine, text = text_machines.target(name), LANGUAGES[name].sample(20, 200, 3)
    for tokens, asked in zip(text.tokens.tolist(), text.asked.tolist(), strict=True):
        state = machine.start
        for token, is_answer in zip(tokens, asked, strict=True):
            said = machine.outputs[machine.readout[state]]
            assert said == (machine.symbols[token] if is_answer else text_machines.FREE)
            state = int(machine.tables[token, state])


def test_model_with_the_machine_of_flip_flop_is_certified_and_with_another_is_not() -> None:
    words = LANGUAGES["flip_flop"].words
    commands = [(0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4)]
    right = np.array([[0, 0], [1, 1], [0, 1], [0, 1], [0, 1], [0, 1]])
    wrong = right.copy()
    wrong[3, 0] = 1
    wanted = text_machines.target("flip_flop")
    for tables in (right, wrong):
        torch.manual_seed(0)
        model = TextModel(len(words), width=16)
        model.hold(commands, [Machine((2,), tables, np.array([3, 4]), 0)])
        with torch.no_grad():  # the read-out says what the head holds
            for one in (model.memory.machines.values, model.memory.state_proj.weight, model.readout.weight):
                one.zero_()
            model.memory.node_proj.weight.zero_()
            model.mlp.down.weight.zero_()
            model.memory.machines.values[:, 0] = torch.tensor([-1.0, 1.0])
            model.memory.machines.out_proj.weight.copy_(torch.eye(*model.memory.machines.out_proj.weight.shape))
            model.memory.state_proj.weight[0, 0] = 5.0
            model.readout.weight[3:5, 0] = torch.tensor([-1.0, 1.0])
            model.readout.bias[:3] = -9.0
        answers = text_machines.Answers(model, [word == "read" for word in words]).eval()
        machine = extract(answers, symbols=words, labels=(*words, text_machines.FREE), grammar=wanted)
        assert bool(certify(machine, wanted, labels="outputs")) == (tables is right)


def test_languages_that_the_page_calls_certified_are_in_the_rows() -> None:
    page = (ROOT / "docs" / "language-model.md").read_text(encoding="utf-8")
    said = set(re.findall("`([a-z_]+)`", page.split("their languages: those of")[1].split("are certified")[0]))
    rows = list(records.read(ROOT / "results" / "text_machines.jsonl"))
    assert said == {row["language"] for row in rows if row["certified"]}
