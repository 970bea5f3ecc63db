"""Machines from logs: detent's state merging beside AALpy's GSM and RPNI, on the same traces.

A case is a machine and a log of it. Each learner gets the same traces; what it learned is run on fresh words, and the
share of words that are right throughout is noted beside the number of states. The time is the CPU time of learning
alone, from the same lists in memory; of detent the median of a few runs, because they are short. With noise, a share of
the outputs is wrong and AALpy is left out: it has no such mode. `python -m benchmarks traces MACHINE.dot ...` in the
environment variable TRACES adds machines of your own.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Report, Target
from benchmarks.machines import Log, clients, connection, handshake, log_of, pairing, random_mealy
from detent._types import Ints
from detent.automata import Mealy, Moore, minimize, read_machine
from detent.learning import learn

SEED = 20261117
OURS, GSM, RPNI = "detent", "AALpy GSM", "AALpy RPNI"
TEST_WORDS, TEST_LENGTH = 500, 40
REPEATS = 5
"""Timed runs of detent; AALpy's take long, and are timed once."""
NOISE = (0.01, 0.05)
AALPY_NODES = 40_000
"""Symbols of the largest log that AALpy's learners are given: they take minutes beyond."""


def run(quick: bool) -> Report:
    report = Report(title="Machines from logs: detent beside AALpy")
    rng = np.random.default_rng(SEED)
    cases = list(machines(quick, rng))
    for learner in (by_gsm, by_rpni, by_detent):  # imports are not timed
        learner([(["a", "a"], ["x", "y"])])
    for name, machine in cases:
        exact(report, name, machine, 300 if quick else 1000, rng)
    for noise in NOISE[1:] if quick else NOISE:
        for name, machine in cases:
            noisy(report, name, machine, 500 if quick else 3000, noise, rng)
    for states, strings in ABBADINGO[:1] if quick else ABBADINGO:
        abbadingo(report, states, strings, rng)
    return report


def machines(quick: bool, rng: np.random.Generator) -> Iterator[tuple[str, Mealy]]:
    """Machines like those of protocols, random ones, and those named in TRACES."""
    yield "handshake (TLS-like), 9 states", handshake(7)
    yield "connection (TCP-like), 12 states", connection()
    yield "two clients (MQTT-like), 9 states", clients()
    yield "pairing (Bluetooth-like), 13 states", pairing()
    for n in (20,) if quick else (20, 50, 100, 200):
        yield f"random, {n} states", random_mealy(n, 5, 4, rng)
    for path in os.environ.get("TRACES", "").split():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read = read_machine(path, missing="sink")
        if isinstance(read, Moore | Mealy):
            yield f"{Path(path).stem}, {read.n_states} states", read.to_mealy()


def exact(report: Report, name: str, machine: Mealy, words: int, rng: np.random.Generator) -> None:
    """One clean log: words right, states and seconds of everybody."""
    log, test = log_of(machine, words, 30, rng), log_of(machine, TEST_WORDS, TEST_LENGTH, rng)
    case = f"{name}, {words} traces of 30"
    learners: dict[str, Callable[[Log], tuple[int, Answers]]] = {OURS: by_detent}
    if words * 30 <= AALPY_NODES:
        learners = {GSM: by_gsm, RPNI: by_rpni, OURS: by_detent}
    right = _compare(report, case, learners, log, test)
    best = max((right[who] for who in right if who != OURS), default=0.0)
    report.targets.append(
        Target(what=f"{case}: words right, AALpy's best {best:.1%}", wanted=best, measured=right[OURS])
    )
    if GSM in right:
        report.target(case, OURS, at_least=10.0)


def noisy(report: Report, name: str, machine: Mealy, words: int, noise: float, rng: np.random.Generator) -> None:
    """One log with wrong outputs: words right."""
    log, test = log_of(machine, words, 30, rng, noise), log_of(machine, TEST_WORDS, TEST_LENGTH, rng)
    case = f"{name}, {words} traces of 30, {noise:.0%} wrong"
    _compare(report, case, {OURS: lambda given: by_detent(given, noise="auto")}, log, test)


Answers = Callable[[list[str]], list[str | None]]


def _compare(
    report: Report, case: str, learners: dict[str, Callable[[Log], tuple[int, Answers]]], log: Log, test: Log
) -> dict[str, float]:
    spent: dict[str, Sequence[float]] = {}
    right: dict[str, float] = {}
    parts = []
    for who, learner in learners.items():
        times = []
        for _ in range(REPEATS if who == OURS else 1):
            began = time.process_time()
            states, answers = learner(log)
            times.append(time.process_time() - began)
        spent[who] = times
        right[who] = sum(answers(word) == outputs for word, outputs in test) / len(test)
        parts.append(f"{who} {right[who]:.1%} of words right, {states} states")
    report.record(case, spent, dict.fromkeys(spent, sum(len(word) for word, _ in log)), unit="symbols")
    report.notes.append(f"{case}: {'; '.join(parts)}")
    return right


def by_detent(log: Log, **options: Any) -> tuple[int, Answers]:
    learned = learn(log, **options)
    machine = learned.runtime

    def answers(word: list[str]) -> list[str | None]:
        return list(machine.outputs(word)) if set(word) <= set(machine.symbols) else [None]

    return learned.states, answers


def by_gsm(log: Log) -> tuple[int, Answers]:
    from aalpy.learning_algs import run_GSM

    data = [list(zip(word, outputs, strict=True)) for word, outputs in log]
    return _of_aalpy(run_GSM(data, output_behavior="mealy", data_format="io_traces"))


def by_rpni(log: Log) -> tuple[int, Answers]:
    from aalpy.learning_algs import run_RPNI

    data = {tuple(word[: t + 1]): output for word, outputs in log for t, output in enumerate(outputs)}
    return _of_aalpy(run_RPNI(list(data.items()), "mealy", print_info=False))


def _of_aalpy(model: Any) -> tuple[int, Answers]:
    def answers(word: list[str]) -> list[str | None]:
        state, outputs = model.initial_state, []
        for symbol in word:
            if symbol not in state.transitions:
                return [None]
            outputs.append(state.output_fun[symbol])
            state = state.transitions[symbol]
        return outputs

    return len(model.states), answers


ABBADINGO = ((64, 3478), (64, 2499), (128, 10723), (256, 28413), (512, 60000))
"""(nominal states, strings): the published problems 1, 4, 2, 3 and S, which EDSM solves; made anew by the same rule."""
SOLVED = 0.99


def abbadingo(report: Report, states: int, strings: int, rng: np.random.Generator) -> None:
    """A random DFA of the competition's kind, learned from labeled strings; solved at 99% of 1,800 fresh strings."""
    target = random_dfa(states, rng)
    length = 2 * int(np.log2(states)) + 3
    words = distinct_strings(strings + 1800, length, rng)
    labels = [str(int(target.readout[target.run(word)])) for word in words]
    log = [([str(a) for a in word], label) for word, label in zip(words[:strings], labels, strict=False)]
    began = time.process_time()
    learned = learn(log, kind="dfa")
    spent = time.process_time() - began
    found = learned.machine
    agree = sum(
        found.outputs[int(found.readout[found.run([str(a) for a in word])])] == ("accept" if label == "1" else "reject")
        for word, label in zip(words[strings:], labels[strings:], strict=True)
    )
    case = f"Abbadingo, {target.n_states} states, {strings} strings"
    report.record(case, {OURS: [spent]}, {OURS: sum(map(len, words[:strings]))}, unit="symbols")
    report.notes.append(f"{case}: {agree / 1800:.2%} of fresh strings right, {learned.states} states")
    report.targets.append(Target(what=f"{case}: share right", wanted=SOLVED, measured=agree / 1800))


def random_dfa(states: int, rng: np.random.Generator) -> Moore:
    """A minimal DFA from a random graph of 5/4 as many nodes, of depth 2 log2(states) - 2, two symbols."""
    wanted = 2 * int(np.log2(states)) - 2
    while True:
        n = states * 5 // 4
        machine = minimize(
            Moore(symbols=("0", "1"), tables=rng.integers(0, n, (2, n)), outputs=("reject", "accept"),
                  readout=rng.integers(0, 2, n))
        )  # fmt: skip
        if _depth(machine) == wanted:
            return machine


def _depth(machine: Moore) -> int:
    level, seen, depth = {machine.start}, {machine.start}, -1
    while level:
        depth += 1
        level = {int(to) for q in level for to in machine.tables[:, q]} - seen
        seen |= level
    return depth


def distinct_strings(count: int, longest: int, rng: np.random.Generator) -> list[Ints]:
    """Different strings over two symbols, uniform among those of length 0 to `longest`."""
    codes = rng.choice((1 << (longest + 1)) - 1, count, replace=False) + 1
    return [np.array([int(bit) for bit in bin(code)[3:]], np.int64) for code in codes.tolist()]
