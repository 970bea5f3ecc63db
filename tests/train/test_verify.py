"""Certificates try coarser formats as long as they hold, and spare themselves those that cannot."""

from __future__ import annotations

import copy

import pytest
import torch

from exactstate.train import train, verify
from exactstate.train.trainer import one_thread
from exactstate.train.verify import extract_and_certify


@pytest.fixture(scope="module")
def run():
    return train("S3", recipe="induce", width=32)


def test_make_certificate_tries_formats_until_one_is_too_coarse(run):
    made = verify.make_certificate(run.model, run.extracted, run.verdict, title="S3")
    assert "float32" in made.proved
    tried = list(made.content["rounding"])
    assert tried == list(verify.NETWORK_FORMATS[: len(tried)])
    assert set(tried[:-1]) <= set(made.proved)


def test_make_certificate_leaves_out_a_format_that_fails_on_a_sample(run, monkeypatch):
    """With a sample of one read-out and bounds that hold in float32 alone."""
    whole, asked = verify.rounding_errors, []

    def errors(model, found, name, **options):
        asked.append((name, len(found.readout_inputs)))
        bound = whole(model, found, name, **options)
        return bound if name == "float32" else whole(model, found, "bfloat16", **options)

    monkeypatch.setattr(verify, "rounding_errors", errors)
    monkeypatch.setattr(verify, "SAMPLES", (1,))
    made = verify.make_certificate(run.model, run.extracted, run.verdict, title="S3")
    assert made.proved == ("float32",)
    assert list(made.content["rounding"]) == ["float32"]
    assert asked == [("float32", 12), ("float16", 1)]


def test_make_certificate_tries_a_larger_sample_where_the_first_holds(run, monkeypatch):
    asked = []

    def holds(model, found, name, *, sample):
        asked.append((name, sample))
        return sample == 1

    monkeypatch.setattr(verify, "margins_exceed_rounding", holds)
    monkeypatch.setattr(verify, "SAMPLES", (1, 1.25))
    made = verify.make_certificate(run.model, run.extracted, run.verdict, title="S3")
    assert list(made.content["rounding"]) == ["float32"]
    assert asked == [("float16", 1), ("float16", 1.25)]


def test_margins_exceed_rounding_is_false_for_a_large_common_offset(run):
    """A million added to every logit changes no arg max, and leaves float32 no digits to tell them apart by."""
    assert verify.margins_exceed_rounding(run.model, run.extracted)
    level = copy.deepcopy(run.model)
    with torch.no_grad():
        level.layers[0].block.bias.add_(1e6)
    found, verdict = extract_and_certify(level, run.task)
    assert verdict
    assert not verify.margins_exceed_rounding(level, found)


def test_train_uses_one_thread_and_restores_the_others():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    seen = []
    train("Z2", lambda row: seen.append(torch.get_num_threads()), recipe="induce", width=16)
    assert set(seen) == {1}
    assert torch.get_num_threads() == 3
    with pytest.raises(ZeroDivisionError), one_thread():
        1 / 0  # noqa: B018
    assert torch.get_num_threads() == 3
    torch.set_num_threads(before)
