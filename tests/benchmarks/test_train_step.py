"""The training-step benchmark: the dense step is the paper's step, and nothing is timed where the two disagree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import train_step
from benchmarks.harness import Report, Unequal
from benchmarks.train_step import CLOSE, departure, fresh, measure
from exactstate.tasks import task


@pytest.mark.parametrize(("name", "heads"), [("S3", (3, 2)), ("Z16", (16,))])
def test_dense_step_has_the_fast_gradient(name, heads):
    assert departure(task(name), fresh(task(name), heads)) < CLOSE


def test_measure_does_not_time_an_unequal_step(monkeypatch):
    dense = train_step.dense_loss

    def muted_otherwise(model, tokens, labels, settings, noise):
        return dense(model, tokens, labels, replace(settings, mask_rate=2.9), noise)

    monkeypatch.setattr(train_step, "dense_loss", muted_otherwise)
    report = Report(title="spoiled")
    with pytest.raises(Unequal, match=r"S3, start: gradients differ by .* nothing was timed"):
        measure(report, "S3, start", task("S3"), fresh(task("S3"), (3, 2)), rounds=1)
    assert not report.timings
