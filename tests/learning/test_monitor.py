"""Monitors: what they learn, their verdicts online and as programs, proofs of policies, files, bad input."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from exactstate.automata import Policy
from exactstate.automata.policy import END
from exactstate.errors import BrokenFile, InvalidConfig, InvalidInput
from exactstate.learning.calls import Call, CallTrace
from exactstate.learning.events import Events
from exactstate.learning.monitor import OTHER, Monitor, Verdict, learn_monitor
from exactstate.runtime.export import to_javascript
from tests.learning.agents import BROWSE, session, sessions

VERIFY = Policy.of("verify before refund")


@pytest.fixture(scope="module")
def labeled() -> Monitor:
    return learn_monitor(sessions(600))


@pytest.fixture(scope="module")
def unlabeled() -> Monitor:
    return learn_monitor(sessions(800, attacks=0.0, labels=False))


def verdicts(monitor: Monitor, names: list[str]) -> list[Verdict]:
    watch = monitor.watch()
    return [*map(watch, names), watch.end()]


@pytest.mark.parametrize("which", ["labeled", "unlabeled"])
def test_monitor_remembers_over_any_distance(which: str, request: pytest.FixtureRequest) -> None:
    monitor = request.getfixturevalue(which)
    draw = np.random.default_rng(7)
    far = [BROWSE[i] for i in draw.integers(0, 4, 10_000)]
    after, never = (verdicts(monitor, ["login", *first, *far, "refund", "logout"]) for first in (["verify"], []))
    assert {found.verdict for found in after} == {"allowed"}
    assert never[10_001].verdict == ("forbidden" if which == "labeled" else "unexpected")
    assert never[10_001].score > 5 * max(found.score for found in never[100:10_001] if found.verdict == "allowed")


def test_monitor_separates_fresh_attacks(labeled: Monitor) -> None:
    draw = np.random.default_rng(3)
    good, bad = ([CallTrace([Call(n) for n in session(draw, attack=a)]) for _ in range(200)] for a in (False, True))
    assert min(labeled.scores(bad)) > max(labeled.scores(good))
    assert sum(map(labeled.allows, good)) >= 196
    assert not any(map(labeled.allows, bad))


def test_monitor_scores_are_shares_of_bad_traces(labeled: Monitor) -> None:
    machine, (good, bad) = labeled.automaton, labeled.counts
    for (a, q), output in np.ndenumerate(machine.readout):
        verdict, score = labeled.verdicts[output]
        assert score == round((bad[a, q] + 0.5) / (good[a, q] + bad[a, q] + 1), 4)
        assert (verdict == "allowed") == (good[a, q] + bad[a, q] > 0 and score < labeled.threshold)
    assert labeled.state_score(machine.run(["login", "refund"])) > 0.9 > 0.2 > labeled.state_score(machine.start)
    assert labeled.expected(machine.start) == [("login", 1.0)]


def test_monitor_says_why(labeled: Monitor) -> None:
    found = verdicts(labeled, ["login", "refund"])[1]
    assert labeled.reason(found).startswith("after 'login', 'refund' came in 0 good and ")
    unknown = labeled.watch()("format_disk")
    assert labeled.reason(unknown) == "no training trace made such a call; after the empty word, expected: login 100%"
    strict = labeled.with_policies([Policy.of("at most 1 verify")])
    assert strict.machine.n_states > labeled.machine.n_states
    assert strict.explain() == labeled.explain().replace(
        f"{labeled.machine.n_states} ", f"{strict.machine.n_states} ", 1
    )
    again = verdicts(strict, ["login", "verify", "verify"])[2]
    assert again[:2] == ("forbidden", 1.0)
    assert strict.reason(again) == "after 'login verify', 'verify' breaks the policy 'at most 1 verify'"


def test_watch_takes_names_calls_and_entries(labeled: Monitor) -> None:
    watch = labeled.watch()
    assert watch("login").verdict == watch(Call("browse")).verdict == watch({"name": "open", "args": {"x": 1}}).verdict
    assert watch("format_disk") == Verdict("unexpected", 0.5, OTHER, watch.state)
    with pytest.raises(InvalidInput, match="a call is a name or an object with a name; got 3"):
        watch(3)  # type: ignore[arg-type]
    ignoring = replace(labeled, events=Events(ignore=("ping",))).watch()
    assert ignoring("ping") == Verdict("allowed", 0.0, "", labeled.machine.start)


def test_monitor_proves_and_refutes_policies(labeled: Monitor) -> None:
    assert labeled.violation(VERIFY) is None
    assert labeled.violation(Policy.of("every login then logout")) is None
    word = labeled.violation(Policy.of("no browse after search"))
    assert word == ("login", "search", "browse")
    assert {found.verdict for found in verdicts(labeled, list(word))[:-1]} == {"allowed"}
    strict = labeled.with_policies([Policy.of("no browse after search")])
    assert strict.violation(Policy.of("no browse after search")) is None
    assert labeled.violation(Policy.of("every login then verify")) == ("login", "logout", END)


def test_violation_is_the_shortest_of_all_allowed_words(labeled: Monitor) -> None:
    policy = Policy.of("at most 1 verify")
    found = labeled.violation(policy)
    machine = policy.machine(labeled.machine.symbols)
    assert found is not None
    for length in range(1, len(found) + 1):
        for word in product(("login", "verify", "refund", "browse"), repeat=length):
            allowed = {one.verdict for one in verdicts(labeled, list(word))[:-1]} == {"allowed"}
            breaks = "refused" in [machine.outputs[o] for o in machine.output_ids(list(word)).tolist()]
            assert not (allowed and breaks) or length == len(found)


def test_violation_is_found_in_a_poisoned_monitor() -> None:
    poisoned = sessions(400, attacks=0.05)
    for trace in poisoned:
        trace.label = None
    monitor = learn_monitor(poisoned)
    word = monitor.violation(VERIFY)
    assert word is not None
    assert "verify" not in word
    assert word[-1] == "refund"


def test_language_has_the_traces_that_are_allowed(labeled: Monitor) -> None:
    language = labeled.language()
    draw = np.random.default_rng(5)
    names = [name for name in labeled.machine.symbols if name not in (END, OTHER)]
    samples = [session(draw, attack=bool(k % 3 == 0)) for k in range(60)]
    samples += [[names[i] for i in draw.integers(0, len(names), 4)] for _ in range(60)]
    seen = set()
    for word in samples:
        accepted = language.outputs[language.readout[language.run(word)]] == "accept"
        assert accepted == labeled.allows(CallTrace([Call(name) for name in word]))
        seen.add(accepted)
    assert seen == {True, False}


def test_monitor_file_reads_back(labeled: Monitor, tmp_path: Path) -> None:
    strict = labeled.with_policies([VERIFY])
    for name in ("m.json", "m.exactstate"):
        strict.save(tmp_path / name)
        back = Monitor.load(tmp_path / name)
        assert back.machine.automaton == strict.machine.automaton
        assert (back.policies, back.threshold, back.notes) == (strict.policies, strict.threshold, strict.notes)
        assert np.array_equal(back.counts, strict.counts)
        assert back.events == strict.events
    strict.machine.save(tmp_path / "plain.json")
    with pytest.raises(BrokenFile, match="it is a machine, and no monitor"):
        Monitor.load(tmp_path / "plain.json")
    entries = json.loads((tmp_path / "m.json").read_text())
    entries["about"]["monitor"]["counts"] = [[[1]]]
    (tmp_path / "m.json").write_text(json.dumps(entries))
    with pytest.raises(BrokenFile, match="its counts are not those of its machine"):
        Monitor.load(tmp_path / "m.json")


@pytest.mark.skipif(shutil.which("cc") is None, reason="compiles the program; there is no C compiler here")
def test_monitor_in_c_gives_the_same_verdicts_and_scores(labeled: Monitor, tmp_path: Path) -> None:
    labeled.to_machine().export(tmp_path / "m.c")
    subprocess.run(["cc", "-O1", str(tmp_path / "m.c"), "-o", str(tmp_path / "m")], check=True)
    word = ["login", "refund", "format_the_whole_disk", "logi", "verify", "browse", "refund", END]
    done = subprocess.run([str(tmp_path / "m")], input=" ".join(word), capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{found.verdict}:{found.score:g}" for found in verdicts(labeled, word[:-1])]


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node")
def test_monitor_in_javascript_gives_the_same_verdicts_and_scores(labeled: Monitor, tmp_path: Path) -> None:
    (tmp_path / "m.mjs").write_text(to_javascript(labeled.to_machine()))
    word = ["login", "refund", "format_the_whole_disk", "logi", "verify", "browse", "refund", END]
    (tmp_path / "main.mjs").write_text(
        f'import {{ outputs }} from "./m.mjs";\nconsole.log(outputs({json.dumps(word)}).join(" "));\n'
    )
    done = subprocess.run(["node", str(tmp_path / "main.mjs")], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{found.verdict}:{found.score:g}" for found in verdicts(labeled, word[:-1])]


def test_learn_monitor_with_a_given_machine(labeled: Monitor) -> None:
    given = labeled.automaton
    rows = [a for a, name in enumerate(given.symbols) if name != OTHER]
    plain = replace(
        given, symbols=tuple(given.symbols[a] for a in rows), tables=given.tables[rows], readout=given.readout[rows]
    )
    again = learn_monitor(sessions(600), machine=plain)
    assert again.machine.n_states <= given.n_states
    assert again.violation(VERIFY) is None
    cut = [a for a, name in enumerate(plain.symbols) if name != "refund"]
    smaller = replace(
        plain, symbols=tuple(plain.symbols[a] for a in cut), tables=plain.tables[cut], readout=plain.readout[cut]
    )
    with pytest.raises(InvalidConfig, match="the machine does not read 'refund'"):
        learn_monitor(sessions(600), machine=smaller)


def test_learn_monitor_says_what_is_wrong() -> None:
    with pytest.raises(InvalidInput, match="no trace with a call"):
        learn_monitor([CallTrace([])])
    with pytest.raises(InvalidInput, match="no trace to learn from ended well"):
        learn_monitor([CallTrace([Call("a")], "attack")] * 9)
    with pytest.raises(InvalidInput, match="a call is named '<end>', which monitors use themselves"):
        learn_monitor([CallTrace([Call("<end>")])] * 9)
    with pytest.raises(InvalidConfig, match="shares of traces are between 0 and 1; got false alarms 2"):
        learn_monitor(sessions(9), false_alarms=2)


def test_learn_monitor_takes_contradictory_labels_and_clocks_that_go_back() -> None:
    both = [CallTrace([Call("a", {}, 9.0), Call("b", {}, 3.0)], label) for label in ("ok", "attack")] * 50
    monitor = learn_monitor(both, Events(wait=(1.0,)))
    assert {found.verdict for found in verdicts(monitor, ["a", "b"])} == {"allowed"}
    assert 0.4 < verdicts(monitor, ["a", "b"])[1].score < 0.6
    assert "100 traces have the calls of one with another label: scores there are shares of both" in monitor.notes
    assert "the clock went back 100 times, which counts as no wait" in monitor.explain()


def test_learn_monitor_is_deterministic() -> None:
    one, other = (learn_monitor(sessions(200), seed=3) for _ in range(2))
    assert one.machine.automaton == other.machine.automaton
    assert one.threshold == other.threshold
