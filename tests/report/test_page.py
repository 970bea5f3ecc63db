"""The report says what the files say, escapes what comes from outside, and stays small."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from exactstate import records
from exactstate.automata import Mealy, mathieu11
from exactstate.certify import Certificate
from exactstate.cli._app import run as command
from exactstate.errors import BrokenFile
from exactstate.report import page_of, write_report
from exactstate.runtime import Machine
from tests.certify.forgery import forged
from tests.report.conftest import HOSTILE

Captured = pytest.CaptureFixture[str]
VOID = {"meta", "link", "img"}


class Outline(HTMLParser):
    """Every element with its attributes, every text; refuses elements that are not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def without_play(page: str) -> str:
    """The report without the page to play with, which is the same in every report, and its data."""
    page = re.sub(r"<script [^>]*>.*?</script>", "", page, flags=re.DOTALL)
    return re.sub(r'<style id="play-style"[^>]*>.*?</style>', "", page, flags=re.DOTALL)


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to / "run"))


def test_page_of_says_what_the_certificate_says(s3: Path) -> None:
    page, content = page_of(s3), json.loads((s3 / "certificate.json").read_text())
    text = Outline(page).text
    margins = [
        (margin, symbol, k)
        for head in content["margins"]["logits"][0]
        for symbol, row in zip(content["symbols"], head, strict=True)
        for k, margin in enumerate(row)
    ]
    margin, symbol, k = min(margins)
    assert f"correct on every word of every length; smallest margin {margin:.3g} at symbol {symbol}, column {k}" in text
    assert f"proved for {' and '.join(content['proved'])}." in text
    assert content["weights"] in text
    assert "without access to the target. It has the same transitions." in text
    assert page.count("data:image/svg+xml") == 4  # training, and two machines


def test_page_of_shows_every_entry_of_every_table(s3: Path) -> None:
    content = json.loads((s3 / "certificate.json").read_text())
    tables = re.findall(r"<h3>Head (\d+): .*?<tbody>(.*?)</tbody>", page_of(s3), re.DOTALL)
    for head, body in tables:
        rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in body.split("</tr>") if row.strip()]
        assert [[int(entry) for entry in row] for row in rows] == content["layers"][0]["tables"][int(head)]
    assert len(tables) == len(content["layers"][0]["heads"])


def test_page_of_shows_heads_as_they_were_kept(s3: Path, tmp_path: Path) -> None:
    text = Outline(page_of(s3)).text
    assert "Heads, one after the other" in text
    assert re.search(r"step layer heads kept nats open 100 0 \d and \d 0\.00", text)
    assert "Learned, kept" in text
    assert "the next layer begins" not in text
    folder = copied(s3, tmp_path)
    rows = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    (folder / "history.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
        + json.dumps({"attempt": 0, "phase": "search-2", "step": 900, "layer": 1, "kept": [], "open": 0.5}) + "\n"
    )  # fmt: skip
    text = Outline(page_of(folder)).text
    assert "Where nothing more is kept, the next layer begins" in text
    before = max(row["step"] for row in rows if row["phase"] == "search")
    assert f"{before + 900:,} 1 none 0.50" in text
    (folder / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows if row["phase"] != "search"))
    assert "Heads, one after the other" not in page_of(folder)


def test_page_of_escapes_names(hostile: Path) -> None:
    page = page_of(hostile)
    outline = Outline(page)
    assert {tag for tag, _ in outline.elements} & {"iframe", "object", "form", "base"} == set()
    scripts = [attributes.get("id") for tag, attributes in outline.elements if tag == "script"]
    assert scripts == ["play-data", "play-script"]
    assert not any(key.startswith("on") for _, attributes in outline.elements for key in attributes)
    sources = [attributes["src"] for tag, attributes in outline.elements if tag == "img"]
    assert all(source is not None and source.startswith("data:image/svg+xml;base64,") for source in sources)
    for name in HOSTILE[:3]:
        assert name in "".join(outline.texts)
    assert "\u202e" not in page
    assert "'; \\u{202e}txt.exe" in unescape(page)


def test_page_of_loads_nothing_from_elsewhere(s3: Path) -> None:
    for _, attributes in Outline(page_of(s3)).elements:
        for key in ("src", "href", "action", "data"):
            assert (attributes.get(key) or "data:").startswith(("data:", "#play"))
    assert "url(" not in page_of(s3)


def test_page_of_does_not_draw_a_large_machine(tmp_path: Path) -> None:
    folder = tmp_path / "m11"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"task": "M11", "seed": 42, "recipe": "induce", "width": 128}))
    Machine.of(mathieu11()).save(folder / "machine.json")
    page = page_of(folder)
    assert "Extracted from the network: 7,920 states, 4 symbols, too many to draw." in page
    assert "A word, step by step" not in page
    assert len(without_play(page)) < 60_000


def test_page_of_a_run_without_a_certificate_says_what_is_wrong(s3: Path, tmp_path: Path) -> None:
    folder = copied(s3, tmp_path)
    (folder / "certificate.json").unlink()
    assert "No certificate. Certified: the output after every word" in Outline(page_of(folder)).text
    machine = Machine.of(Mealy(
        symbols=("(0 1)", "(1 2)"), tables=[[0], [0]], states=("only",), outputs=("e", "(0 1)", "(1 2)"),
        readout=[[1], [2]],
    ))  # fmt: skip
    machine.save(folder / "machine.json")
    text = Outline(page_of(folder)).text
    assert "No certificate. Not certified: after '(0 1) (0 1)' the machine outputs '(0 1)', the target 'e'" in text


def test_page_of_rejects_a_certificate_that_was_changed(s3: Path, tmp_path: Path) -> None:
    folder = copied(s3, tmp_path)
    content = json.loads((folder / "certificate.json").read_text())
    content["layers"][0]["tables"][0][0][0] ^= 1
    Certificate(content).write(folder / "certificate.json")
    text = Outline(page_of(folder)).text
    assert "The certificate is not valid." in text
    assert "correct on every word" not in text


def test_page_of_a_baseline_has_training_curves_and_a_length_sweep(tmp_path: Path) -> None:
    plan = {"task": "S3", "seed": 1, "cell": "mamba", "recipe": "cpu", "layers": 1, "width": 16,
            "end_to_end": {"length": 24}}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(plan))
    for step in (50, 100):
        row = {"attempt": 0, "phase": "end_to_end", "step": step, "loss": 1 / step, "accuracy": step / 100}
        records.append(tmp_path / "history.jsonl", row)
    common = {"measure": "words", "threshold": 0.9, "batch": 64, "max_length": 1024}
    fails = {"cell": "mamba", "failing_length": 77, "accuracies": {"32": 1.0, "64": 0.95, "128": 0.25}}
    holds = {"cell": "nfsm", "failing_length": None, "accuracies": {str(1 << k): 1.0 for k in range(11)}}
    for row in (fails, holds):
        records.append(tmp_path / "sweeps.jsonl", common | row)
    text = Outline(page_of(tmp_path)).text
    assert "mamba has no transition tables to extract, so it can only be tested on samples." in text
    assert "It was correct on 100% of fresh words at the training length, 24." in text
    assert "network mamba, 1 layer, width 16 recipe cpu" in text
    assert "tables of the heads" not in text
    assert "The certificate" not in text
    assert "100 steps" in text
    assert "mamba: fails at length 77; fewer than 90% of the words have all labels correct." in text
    assert "nfsm: no failure up to length 1,024 (64 words each)." in text


def test_page_of_rejects_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match=r"this is not the folder of a run: there is no config.json in it\."):
        page_of(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(BrokenFile, match=r"this is not the configuration of a run \(it names no task\)\."):
        page_of(tmp_path)
    (tmp_path / "config.json").write_text('{"task": ')
    with pytest.raises(BrokenFile, match=r"config.json: this is not the configuration of a run"):
        page_of(tmp_path)


def test_page_of_shows_commands_that_work(s3: Path, capsys: Captured) -> None:
    page = page_of(s3)
    python, shell = (unescape(block) for block in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)[-2:])
    code, comment = python.split("# ", 1)
    exec(code, {})
    assert capsys.readouterr().out == comment.splitlines()[0] + "\n"
    piped, checked = shell.splitlines()
    words, _, run = piped.partition(" | ")
    assert shlex.split(words)[0] == "echo"
    (s3 / "word.txt").write_text(shlex.split(words)[1])
    assert command([*shlex.split(run)[1:], str(s3 / "word.txt")]) == 0
    assert command(shlex.split(checked)[1:]) == 0


def test_write_report_and_the_verb_report_write_the_same_page(s3: Path, tmp_path: Path, capsys: Captured) -> None:
    assert command(["report", str(s3), "-o", str(tmp_path / "page.html"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bytes"] == len((tmp_path / "page.html").read_bytes())
    assert write_report(s3) == s3 / "report.html"
    assert (s3 / "report.html").read_bytes() == (tmp_path / "page.html").read_bytes()


def test_page_of_a_long_history_has_a_small_chart(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"task": "S3"}))
    losses = np.random.default_rng(0).random(5_000)
    rows = [{"attempt": 0, "phase": "end_to_end", "step": k + 1, "loss": loss} for k, loss in enumerate(losses)]
    (tmp_path / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(without_play(page_of(tmp_path))) < 60_000  # the history has 400 kB


def who_has(story: str) -> str:
    """The answer to the question at the end, by following the items."""
    holder: dict[str, str] = {}
    for sentence in story.split(" . "):
        words = sentence.split()
        if words[0] == "who":
            return holder[words[3]]
        if words[1] == "has":
            holder[words[3]] = words[0]
        else:
            swapped = {words[0]: words[3], words[3]: words[0]}
            holder = {item: swapped.get(name, name) for item, name in holder.items()}
    raise AssertionError(story)


def test_page_of_a_stack_with_questions(tmp_path: Path) -> None:
    results = Path(__file__).parents[2] / "results"
    shutil.copy(results / "certificates" / "TSO3-42.json", tmp_path / "certificate.json")
    shutil.copy(results / "machines" / "TSO3-42.json", tmp_path / "machine.json")
    (tmp_path / "config.json").write_text(json.dumps({"task": "TSO3", "seed": 42}))
    page = page_of(tmp_path)
    text = Outline(page).text
    assert "correct on every word of the grammar of every length" in text
    assert re.search(r"column \d+ \(layer \d, head \d\)", text)
    assert "Layer 1: heads of 4 4 4 indices, tables for 56 windows" in text
    assert "Shown: 24 of 56 rows" in text
    assert "The extracted machine reads sentences in any order" in text
    told = re.search(r"word = '(.*)'\nprint\(.*\)\n# (\w+)\n", unescape(page))
    assert told is not None
    assert who_has(told[1]) == told[2]
    assert len(without_play(page)) < 60_000


@pytest.mark.parametrize(("certificate", "sentence"), [
    ("A5", "It is about other weights"), ("forged", "Its target is not S3: after"), ("empty", "has no entry 'name'"),
])  # fmt: skip
def test_page_of_refuses_a_certificate_of_another_network(
    certificate: str, sentence: str, s3: Path, tmp_path: Path
) -> None:
    folder = copied(s3, tmp_path)
    path = folder / "certificate.json"
    if certificate == "A5":
        shutil.copy("results/certificates/A5-42.json", path)
    elif certificate == "forged":
        Certificate(forged(json.loads(path.read_text()))).write(path)
    else:
        path.write_text('{"format": "exactstate-certificate", "version": 1}')
    text = Outline(page_of(folder)).text
    assert "The certificate is not valid." in text
    assert sentence in text
    assert "Certified:" not in text


def test_page_of_a_certificate_without_weights(s3: Path, tmp_path: Path) -> None:
    folder = copied(s3, tmp_path)
    assert "are not in this folder" not in Outline(page_of(folder)).text
    (folder / "model.safetensors").unlink()
    assert "The weights that the certificate names are not in this folder." in Outline(page_of(folder)).text
