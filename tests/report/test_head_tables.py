"""The step table is what the network does, and what the certificate says it does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch

from exactstate.report import page_of
from exactstate.report.head_tables import step_table, steps_of
from exactstate.report.html import page_template
from exactstate.train import load_run

TSO = Path(__file__).parents[2] / "results" / "certificates" / "TSO3-42.json"
STORY = "alice has the key . bob has the ring . charlie has the coin . bob swaps with alice . who has the ring ?"


def test_steps_of_a_word_have_the_indices_of_the_network(s3: Path) -> None:
    run = load_run(s3)
    model, found = run.model, run.extracted
    content = json.loads((s3 / "certificate.json").read_text())
    word = ["(0 1)", "(1 2)", "(1 2)", "(0 1)", "(0 1)", "(1 2)", "(0 1)"]
    numbers = torch.tensor([[content["symbols"].index(symbol) for symbol in word]])
    for length, step in enumerate(steps_of(content, word), 1):
        with torch.no_grad():
            _, state = model(numbers[:, :length])
        assert [list(layer) for layer in step.indices] == [state[0][1].flatten().tolist()]
    assert [step.state for step in steps_of(content, word)] == found.outputs(word)


def test_steps_of_a_stack_are_configurations_of_its_certificate() -> None:
    content = json.loads(TSO.read_text())
    reached = {
        tuple(row[: sum(len(layer["heads"]) for layer in content["layers"])]) for row in content["configurations"]
    }
    steps = steps_of(content, STORY.split())
    assert {tuple(k for layer in step.indices for k in layer) for step in steps} <= reached
    assert steps[-1].state == "idle | ring: alice, key: bob, coin: charlie"


def test_step_table_is_on_the_page(s3: Path) -> None:
    page = page_of(s3)
    machine = load_run(s3).machine()
    table = re.search(r"A word, step by step</h2>.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    assert table is not None
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table[1].split("</tr>") if row.strip()]
    assert [row[1] for row in rows] == machine.outputs([row[0] for row in rows])
    assert len(rows) == 6


def test_step_table_names_the_layers_of_a_stack_above_their_heads() -> None:
    content = json.loads(TSO.read_text())
    table = step_table(content, STORY.split(), [""] * (len(STORY.split()) - 1) + ["alice"])
    assert (table["layers"], len(table["titles"])) == ([4, 3], 2 + 4 + 3 + 1)
    page = str(page_template().environment.get_template("macros.html").module.steps(table))  # type: ignore[attr-defined]
    assert re.findall(r'colspan="(\d)" class="group">(layer \d)', page) == [("4", "layer 0"), ("3", "layer 1")]
    assert page.count('<th scope="col">head ') == 7
    assert '<th scope="row">?</th><td>alice</td>' in page
    assert re.search("<td>idle . ring: alice, key: bob, coin: charlie</td></tr>\\s*</tbody>", page)


def test_step_table_is_left_out_for_a_certificate_of_another_task(s3: Path, tmp_path: Path) -> None:
    for name in ("config.json", "machine.json"):
        (tmp_path / name).write_bytes((s3 / name).read_bytes())
    (tmp_path / "certificate.json").write_bytes(TSO.read_bytes())
    assert "A word, step by step" not in page_of(tmp_path)
