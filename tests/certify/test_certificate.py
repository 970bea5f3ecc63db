"""Certificates as files: written whole, read back the same, and summed up in words."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from detent.automata import Moore, symmetric
from detent.certify import Bounds, Certificate, certify
from detent.certify.check import Unreadable, check
from detent.errors import BrokenFile, InvalidInput
from tests.certify.making import MAKERS, Off, certificate, s3, story


@pytest.mark.parametrize("name", MAKERS)
def test_there_and_back(name: str, tmp_path: Path) -> None:
    written = Certificate(certificate(name))
    written.write(tmp_path / "c.json")
    read = Certificate.read(tmp_path / "c.json")
    assert read.content == written.content == json.loads((tmp_path / "c.json").read_text())
    assert (read.name, read.proved) == (name, ("float32", "float16"))
    assert check(tmp_path / "c.json")
    assert list(tmp_path.iterdir()) == [tmp_path / "c.json"]


def test_the_seal_is_the_one_described() -> None:
    content = certificate("TSO2")
    seal = content.pop("sha256")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert hashlib.sha256(text.encode("ascii")).hexdigest() == seal


def test_only_what_is_certified_gets_one() -> None:
    found, _ = s3()
    other = certify(found, other_symbols_first())
    assert not other
    with pytest.raises(InvalidInput, match="only what is certified gets a certificate; not certified: after"):
        Certificate.of(found, other)


def other_symbols_first() -> Moore:
    machine = symmetric(3)
    return replace(machine, tables=machine.tables[::-1])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "this is not JSON: expecting value at column 1."),
        (b"\xff\xfe", "this is not UTF-8 text."),
        (b"[" * 100_000, "lists are nested too deep"),
        (b"[]", 'wanted a JSON object with "format": "detent-certificate"; this is some other JSON.'),
        (b'{"format": "detent-machine"}', "this is some other JSON."),
        (b'{"format": "detent-certificate", "version": 2}', "this is version 2; this detent reads version 1."),
        (b'{"format": "detent-certificate", "version": true}', "this is version True; this detent reads version 1."),
        (b'{"format": "detent-certificate", "format": "x"}', "the entry 'format' comes twice."),
        (b'{"format": NaN}', "NaN is not a number that JSON knows."),
        (b'{"format": 1' + b"0" * 5000 + b"}", "digits"),
    ],
)
def test_what_is_no_certificate_is_not_read(text: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(text)
    with pytest.raises(Unreadable) as refusal:
        check(tmp_path / "bad.json")
    assert reason in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="there is no such file"):
        Certificate.read(tmp_path / "none.json")
    with pytest.raises(Unreadable, match="is a directory"):
        check(tmp_path)


def test_margins_count_where_something_is_chosen() -> None:
    found, verdict = story()
    margins = Bounds.margins(found, verdict)
    assert verdict.question is not None
    question_mark = found.symbols.index("?")
    assert np.flatnonzero(np.isfinite(margins.answers)).tolist() == [question_mark]
    labels = np.isfinite(margins.labels)
    assert [found.symbols[a] for a in np.flatnonzero(~labels)] == []
    assert margins.exceed(Bounds.errors(found, verdict, Off.by(1.99, found)))
    assert not margins.exceed(Bounds.errors(found, verdict, Off.by(2.0, found)))
    answers = Off.by(0.1, found)
    answers.answers = np.where(np.arange(len(answers.answers)) >= 0, 5.0, 0.0)
    assert not margins.exceed(Bounds.errors(found, verdict, answers))
    label = Off.by(0.1, found)
    label.labels[7] = 2.0
    assert not margins.exceed(Bounds.errors(found, verdict, label))
    column = Off.by(0.1, found)
    used = np.argwhere(found.layers[1].used)[0]
    column.columns[1][tuple(used)] = np.inf
    assert not margins.exceed(Bounds.errors(found, verdict, column))
    unused = Off.by(0.1, found)
    unused.columns[1][~found.layers[1].used] = np.inf
    assert margins.exceed(Bounds.errors(found, verdict, unused))


def test_an_error_belongs_to_its_own_margin() -> None:
    """Read-outs of one symbol, one with ten times the margin and the error of the others: all are decided."""
    found, verdict = story()
    ample = int(found.finals[0].max())
    margins = found.label_margins.copy()
    margins[ample] *= 10
    found = replace(found, label_margins=margins)
    least, off = Bounds.margins(found, verdict), Off.by(0.1, found)
    off.labels[ample] = 0.45 * margins[ample]
    errors = Bounds.errors(found, verdict, off)
    assert off.labels[ample] > 0.5 * least.labels.min()
    assert least.exceed(errors)
    assert (errors.labels >= 0.1).all()
    off.labels[ample] = 0.51 * margins[ample]
    assert not least.exceed(Bounds.errors(found, verdict, off))


def test_errors_of_something_else_are_refused() -> None:
    found, verdict = s3()
    with pytest.raises(InvalidInput, match="errors are those of the same windows and read-outs, shapes"):
        Certificate.of(found, verdict, rounding={"float32": Off.by(0.1, story()[0])})


def test_what_could_not_be_bounded_is_no_proof(tmp_path: Path) -> None:
    found, verdict = s3()
    made = Certificate.of(found, verdict, rounding={"float16": Off.by(np.inf, found)})
    made.write(tmp_path / "c.json")
    assert made.proved == ()
    assert made.content["rounding"]["float16"]["labels"] == [np.finfo(float).max] * 2
    assert check(tmp_path / "c.json")


def test_summaries() -> None:
    summary = Certificate(certificate("S3")).summary()
    for line in (
        "S3: compared with a target of 6 states, its states are the labels",
        "heads: 4 3",
        "6 of 12 joint indices reached, for 6 states of the target: one for each",
        "what is said after every word is right, at every length",
        "the target is not definite: '(0 1)' keeps 'e' and '(0 1)' apart, however often it is read",
        "the target is a group: every symbol permutes the states",
        "weakest column: head 0 reading '(0 1)' at index 0, ahead by 4",
        "smallest margin of the logits by symbol: (0 1) 4, (1 2) 4",
        "smallest margin of the labels by symbol: (0 1) 4, (1 2) 4",
        "rounding: proved to change nothing in float16, float32; coarsest float16; not for bfloat16",
    ):
        assert line in summary.splitlines()
    story_lines = Certificate(certificate("TSO2")).summary().splitlines()
    assert "heads: 3 3 | 3 3, convolutions over 2 symbols" in story_lines
    assert (
        "what is said after every word of the grammar is right, at every length, and so is every answer" in story_lines
    )
    assert any("with redundancy" in line and "in 78 configurations" in line for line in story_lines)
    found, verdict = s3()
    assert "rounding: nothing is proved; logits were evaluated in float64" in Certificate.of(found, verdict).summary()
    none = Certificate.of(found, verdict, rounding={"bfloat16": Off.by(9.0, found)}).summary()
    assert "rounding: for none of bfloat16 is it proved to change nothing" in none
    weak = Off.by(0.1, found)
    assert "a model: compared" in Certificate.of(found, verdict, rounding={"float32": weak}).summary()
