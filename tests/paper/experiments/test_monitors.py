"""The campaign of monitors: its measures beside slow ones, its machines beside their networks, its jobs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from exactstate.errors import BackendUnavailable
from exactstate.learning.calls import Call, CallTrace
from paper.experiments import monitors
from paper.experiments.agent_sessions import Source, sessions, source_of
from paper.experiments.monitors import MONITORS, Data, LastCalls, Network, average_precision, extracted, recall_at
from paper.tables import MONITOR_METHODS, monitors_table, policies_table


def toy_session(draw: np.random.Generator, held_out: bool, changed: bool) -> tuple[list[Call], str]:
    """An attack pays without a login."""
    return [Call("open" if changed else "login"), Call("pay")], "attack" if changed else "ok"


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> Data:
    monkeypatch.setattr(monitors, "source_of", lambda name: Source(["look", "wait"], toy_session))
    return Data.make("agentdojo", 1, 200, 60, 40)


def test_average_precision_is_that_of_scikit_learn() -> None:
    draw = np.random.default_rng(0)
    for _ in range(20):
        scores, bad = draw.integers(0, 9, 80) / 9, draw.integers(0, 2, 80)
        assert average_precision(scores, bad) == pytest.approx(average_precision_score(bad, scores))


def test_recall_at_lets_at_most_the_share_of_good_sessions_pass() -> None:
    scores = np.concatenate([np.arange(100) / 100, [0.985, 0.99, 0.5]])
    bad = np.array([0] * 100 + [1] * 3)
    assert recall_at(scores, bad, 0.01) == pytest.approx(2 / 3)  # above 0.98, the second of the good ones
    assert (scores[bad == 0] > 0.98).mean() == 0.01


def test_sessions_have_idle_calls_at_one_place_besides() -> None:
    draw = np.random.default_rng(0)
    (trace,) = sessions(Source(["look"], toy_session), draw, 1, far=50)
    names = [call.name for call in trace.calls]
    assert names[1:] == ["look"] * 50 + ["pay"]
    assert isinstance(trace, CallTrace)


def test_extracted_machine_scores_as_its_network(data: Data) -> None:
    torch.manual_seed(0)
    monkey = (2, 3)
    before, monitors.HEADS = monitors.HEADS, monkey
    network = Network(len(data.symbols), "nfsm").eval()
    monitors.HEADS = before
    machine = extracted(network, data, 1000)
    for part in ("clean", "far"):
        assert np.array_equal(machine.on(data.words[part]), monitors.network_scores(network, data.words[part]))


def test_last_calls_forget_what_is_four_calls_ago(data: Data) -> None:
    last = LastCalls.of(data)
    clean, far = ([average_precision(last.on(data.words[part]).max(1), data.bad[part])] for part in ("clean", "far"))
    assert clean[0] > 0.99
    scores = last.on(data.words["far"])
    ends = (data.words["far"] >= 0).sum(1) - 1
    at_end = scores[np.arange(len(ends)), ends]
    assert len(set(at_end.round(6))) < 12
    assert far[0] > 0.5


def test_monitor_rows_have_every_method(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitors, "HEADS", (2, 2))
    rows = monitors.monitor_rows("agentdojo", 1, 60, 200, 60, 40, 1000)
    assert {row["method"] for row in rows} == set(MONITOR_METHODS)
    by_method = {row["method"]: row for row in rows}
    assert by_method["machine"]["largest_difference"] == 0.0
    for name in ("auprc_clean", "auprc_far", "recall_clean", "recall_far"):
        assert by_method["machine"][name] == by_method["network"][name]
    assert by_method["merging"]["auprc_far"] > 0.99
    assert len(monitors_table(rows).rows) == 6


def test_policies_table_shows_the_trace() -> None:
    row = {"data": "a", "seed": 1, "policy": "x before y", "poisoned": 0.0, "verdict": "refuted", "trace": ["y"],
           "attacks_reported": 0.5, "good_reported": 0.0, "proved_with_policy": True}  # fmt: skip
    reported = [("a", "attacks reported", "50.0%"), ("a", "good sessions reported", "0.0%")]
    assert policies_table([row, row | {"seed": 2}]).rows == [("a", "`x before y`", "refuted: `y`"), *reported]


def test_source_of_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "inspect_evals", None)
    monkeypatch.setitem(__import__("sys").modules, "inspect_evals.tau2.utils", None)
    with pytest.raises(BackendUnavailable, match=r"tau2 is read from inspect-evals, and .*pip install '\.\[agents\]'"):
        source_of("tau2")


def test_monitors_jobs_are_seeds_and_policies() -> None:
    keys = [job.key for job in MONITORS.jobs(MONITORS.options(tasks=["tau2"]))]
    assert [key.get("method", "policies") for key in keys] == ["policies", "network", "network", "network"]
