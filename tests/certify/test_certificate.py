"""Certificates as files: written whole, read back the same, and summed up in words."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from exactstate.automata import Moore, symmetric
from exactstate.certify import Bounds, Certificate, certify
from exactstate.certify.check import Unreadable, check
from exactstate.errors import BrokenFile, InvalidInput
from tests.certify.certificates import MAKERS, certificate, constant_errors, s3, story
from tests.extract.building import side_by_side


@pytest.mark.parametrize("name", MAKERS)
def test_certificate_write_and_read(name: str, tmp_path: Path) -> None:
    written = Certificate(certificate(name))
    written.write(tmp_path / "c.json")
    read = Certificate.read(tmp_path / "c.json")
    assert read.content == written.content == json.loads((tmp_path / "c.json").read_text())
    assert (read.name, read.proved) == (name, ("float32", "float16"))
    assert check(tmp_path / "c.json")
    assert list(tmp_path.iterdir()) == [tmp_path / "c.json"]


def test_certificate_seal_is_the_one_of_the_format() -> None:
    content = certificate("TSO2")
    seal = content.pop("sha256")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    assert hashlib.sha256(text.encode("ascii")).hexdigest() == seal


def test_certificate_needs_a_certified_machine() -> None:
    found, _ = s3()
    other = certify(found, other_symbols_first())
    assert not other
    with pytest.raises(InvalidInput, match="only a certified machine gets a certificate; not certified: after"):
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
        (b"[]", 'wanted a JSON object with "format": "exactstate-certificate"; this is some other JSON.'),
        (b'{"format": "exactstate-machine"}', "this is some other JSON."),
        (b'{"format": "oldname-certificate"}', "the format is 'oldname-certificate', of another program or an older"),
        (b'{"format": "exactstate-certificate", "version": 2}', "this is version 2; this program reads version 1."),
        (
            b'{"format": "exactstate-certificate", "version": true}',
            "this is version True; this program reads version 1.",
        ),
        (b'{"format": "exactstate-certificate", "format": "x"}', "the key 'format' occurs twice."),
        (b'{"format": NaN}', "NaN is not a JSON number."),
        (b'{"format": 1' + b"0" * 5000 + b"}", "digits"),
    ],
)
def test_check_does_not_read_other_files(text: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(text)
    with pytest.raises(Unreadable) as refusal:
        check(tmp_path / "bad.json")
    assert reason in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_certificate_read_of_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="there is no such file"):
        Certificate.read(tmp_path / "none.json")
    with pytest.raises(Unreadable, match="is a directory"):
        check(tmp_path)


def test_bounds_margins_exist_where_something_is_chosen() -> None:
    found, verdict = story()
    margins = Bounds.margins(found, verdict)
    assert verdict.question is not None
    question_mark = found.symbols.index("?")
    assert np.flatnonzero(np.isfinite(margins.answers)).tolist() == [question_mark]
    labels = np.isfinite(margins.labels)
    assert [found.symbols[a] for a in np.flatnonzero(~labels)] == []
    assert margins.exceed(Bounds.errors(found, verdict, constant_errors(1.99, found)))
    assert not margins.exceed(Bounds.errors(found, verdict, constant_errors(2.0, found)))
    answers = constant_errors(0.1, found)
    answers.answers[:] = 5.0
    assert not margins.exceed(Bounds.errors(found, verdict, answers))
    label = constant_errors(0.1, found)
    label.labels[7] = 2.0
    assert not margins.exceed(Bounds.errors(found, verdict, label))
    column = constant_errors(0.1, found)
    used = np.argwhere(found.layers[1].used)[0]
    column.columns[1][tuple(used)] = np.inf
    assert not margins.exceed(Bounds.errors(found, verdict, column))
    unused = constant_errors(0.1, found)
    unused.columns[1][~found.layers[1].used] = np.inf
    assert margins.exceed(Bounds.errors(found, verdict, unused))


def test_bounds_compare_an_error_with_its_own_margin() -> None:
    """Read-outs of one symbol, one with ten times the margin and the error of the others: all are decided."""
    found, verdict = story()
    ample = int(found.readout_ids[0].max())
    margins = found.label_margins.copy()
    margins[ample] *= 10
    found = replace(found, label_margins=margins)
    least, off = Bounds.margins(found, verdict), constant_errors(0.1, found)
    off.labels[ample] = 0.45 * margins[ample]
    errors = Bounds.errors(found, verdict, off)
    assert off.labels[ample] > 0.5 * least.labels.min()
    assert least.exceed(errors)
    assert (errors.labels >= 0.1).all()
    off.labels[ample] = 0.51 * margins[ample]
    assert not least.exceed(Bounds.errors(found, verdict, off))


def test_certificate_refuses_errors_of_another_machine() -> None:
    found, verdict = s3()
    with pytest.raises(InvalidInput, match="wanted errors of the same windows and read-outs, of shapes"):
        Certificate.of(found, verdict, rounding={"float32": constant_errors(0.1, story()[0])})


def test_certificate_with_infinite_errors_proves_nothing(tmp_path: Path) -> None:
    found, verdict = s3()
    made = Certificate.of(found, verdict, rounding={"float16": constant_errors(np.inf, found)})
    made.write(tmp_path / "c.json")
    assert made.proved == ()
    assert made.content["rounding"]["float16"]["labels"] == [np.finfo(float).max] * 2
    assert check(tmp_path / "c.json")


def test_summary_of_certificates() -> None:
    summary = Certificate(certificate("S3")).summary()
    for line in (
        "S3: compared with a target of 6 states; the labels are its states",
        "heads: 4 3",
        "6 of 12 joint indices reached, for 6 target states: one configuration for each",
        "the output after every word of any length equals the target's",
        "the target is not definite: '(0 1)' keeps 'e' and '(0 1)' apart, however often it is repeated",
        "the target is a group: every symbol permutes the states",
        "weakest column: head 0, symbol '(0 1)', index 0, margin 4",
        "smallest margins of the logits: (0 1) 4, (1 2) 4",
        "smallest margins of the labels: (0 1) 4, (1 2) 4",
        "rounding: proved to change nothing in float32, float16, given arithmetic as in its 1 assumptions and margins "
        "and bounds as in the file; not proved in bfloat16",
    ):
        assert line in summary.splitlines()
    story_lines = Certificate(certificate("TSO2")).summary().splitlines()
    assert "heads: 3 3 | 3 3, convolutions over 2 symbols" in story_lines
    assert (
        "the output after every word of the grammar of any length equals the target's, and so does every answer"
        in story_lines
    )
    several = "some target states have several configurations"
    assert any(several in line and "in 78 configurations" in line for line in story_lines)
    assert any(line.startswith("smallest margins of the answers: ? 4") for line in story_lines)
    found, verdict = s3()
    assert "rounding: no format was tried; logits were evaluated in float64" in Certificate.of(found, verdict).summary()
    none = Certificate.of(found, verdict, rounding={"bfloat16": constant_errors(9.0, found)}).summary()
    assert "rounding: proved to change nothing in no format; not proved in bfloat16" in none
    weak = constant_errors(0.1, found)
    assert "a model: compared" in Certificate.of(found, verdict, rounding={"float32": weak}).summary()


def test_summary_of_configurations_that_represent_several_states() -> None:
    """A machine that repeats the last letter needs one configuration for all states of the target."""
    target = Moore.of(Moore(symbols=("a", "b"), tables=[[1] * 3, [2] * 3], outputs=("?",), readout=[0] * 3))
    found = side_by_side([np.array([[0], [0]])], lambda seen: seen[0] + 1, labels=3).read(symbols=("a", "b"))
    summary = Certificate.of(found, certify(found, target)).summary()
    assert "for 3 target states: some configurations represent several equivalent target states" in summary
