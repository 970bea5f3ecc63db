"""Running a machine on one long word, on one core: the interpreter, a plain C loop and automata-lib."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _machines, _plain_loop
from benchmarks.harness import Method, Report, Target
from exactstate._types import Ints
from exactstate.runtime import Machine

SEED = 20261115
CHUNK = 1 << 22
MEGABYTE = 1 << 20


def run(quick: bool) -> Report:
    report = Report(title="One word through a machine, one core: symbols per second")
    rng = np.random.default_rng(SEED)
    length, rounds = (1 << 23, 5) if quick else (1 << 26, 9)
    for name, machine, at_least in (
        ("16 states", _machines.sixteen(rng), 3.0),
        ("M11, 4 heads of 11", _machines.mathieu(rng), 1.0),
        ("57-state protocol", _machines.protocol(rng), 1.0),
        ("A5, 60 states", _machines.rotations(), 1.0),
        ("A5, as heads", _machines.rotations().with_heads(), 1.0),
    ):
        word = rng.integers(0, machine.n_symbols, length, dtype=np.uint8)
        _states(report, name, machine, word, rounds, at_least)
        _outputs(report, name, machine, word[: length // 2], rounds)
    _linear(report, (10**6, 10**7, 10**8) if quick else (10**6, 10**7, 10**8, 10**9))
    return report


def _states(report: Report, name: str, machine: Machine, word: Ints, rounds: int, at_least: float) -> None:
    """The final state."""
    case = f"{name}: state"
    tables, start = machine.automaton.tables, machine.start
    methods = [
        Method("plain C loop", lambda: _plain_loop.run(tables, word, start), len(word)),
        Method(f"interpreter ({machine.strategy})", lambda: machine.run(word), len(word)),
    ]
    if name == "16 states":
        methods += [_automata_lib(machine, word[: 1 << 18]), _python_loop(machine, word[: 1 << 20])]
    report.measure(case, methods, unit="symbols", rounds=rounds)
    report.target(case, methods[1].name, at_least=at_least)
    if name == "16 states":
        report.target(case, methods[1].name, at_least=200.0, over="automata-lib")


def _outputs(report: Report, name: str, machine: Machine, word: Ints, rounds: int) -> None:
    """The output at every symbol, written to memory."""
    case = f"{name}: outputs"
    tables, start, readout = machine.automaton.tables, machine.start, machine.readout
    ours = Method(f"interpreter ({machine.strategy})", lambda: machine.output_ids(word), len(word))
    plain = Method("plain C loop", lambda: _plain_loop.output_ids(tables, readout, word, start), len(word))
    report.measure(case, [plain, ours], unit="symbols", rounds=rounds)
    report.target(case, ours.name, at_least=1.0)


def _automata_lib(machine: Machine, word: Ints) -> Method:
    """Acceptance by the same machine in automata-lib."""
    from automata.fa.dfa import DFA

    automaton, states = machine.automaton, machine.states
    dfa = DFA(
        states=set(states), input_symbols=set(machine.symbols), initial_state=states[machine.start],
        transitions={
            states[q]: {name: states[automaton.tables[a, q]] for a, name in enumerate(machine.symbols)}
            for q in range(machine.n_states)
        },
        final_states={states[q] for q in range(machine.n_states) if automaton.readout[q] == 1},
    )  # fmt: skip
    spelt: Any = [machine.symbols[a] for a in word.tolist()]

    def accepted() -> bool:
        return bool(automaton.readout[machine.run(word)] == 1)

    return Method("automata-lib", lambda: dfa.accepts_input(spelt), len(word), expected=accepted)


def _python_loop(machine: Machine, word: Ints) -> Method:
    rows, spelt, start = machine.automaton.tables.tolist(), word.tolist(), machine.start

    def loop() -> int:
        state = start
        for symbol in spelt:
            state = rows[symbol][state]
        return int(state)

    return Method("Python loop", loop, len(word), expected=lambda: machine.run(word))


def _linear(report: Report, lengths: tuple[int, ...]) -> None:
    """Longer and longer words in chunks, each in a process of its own that reports its time and memory."""
    rows = [_in_a_process(length) for length in lengths]
    for length, row in zip(lengths, rows, strict=True):
        report.notes.append(
            f"{length:.0e} symbols through a stream: {row['seconds'] / length * 1e9:.3f} ns per symbol with outputs "
            f"({row['strategy']}), {row['peak'] / MEGABYTE:.0f} MB at most"
        )
    per_symbol = [row["seconds"] / length for length, row in zip(lengths, rows, strict=True)]
    report.targets += [
        Target(
            what=f"time per symbol at {lengths[-1]:.0e} over that at {lengths[1]:.0e}", wanted=1.5, at_most=True,
            measured=per_symbol[-1] / per_symbol[1],
        ),
        Target(
            what=f"MB more for {lengths[-1]:.0e} symbols than for {lengths[1]:.0e}", wanted=32, at_most=True,
            measured=(rows[-1]["peak"] - rows[1]["peak"]) / MEGABYTE,
        ),
    ]  # fmt: skip


def stream(length: int) -> dict[str, Any]:
    """Push so many symbols through a stream; only the pushes are timed, not the making of chunks."""
    machine = _machines.protocol(np.random.default_rng(SEED))
    chunk = np.random.default_rng(SEED).integers(0, machine.n_symbols, min(CHUNK, length), dtype=np.uint8)
    stream, spent = machine.stream(), 0.0
    _timed(lambda: machine.stream().push(chunk))
    while stream.symbols_read < length:
        part = chunk[: length - stream.symbols_read]
        spent += _timed(lambda part=part: stream.push(part))  # type: ignore[misc]
    return {"seconds": spent, "peak": peak_memory(), "strategy": machine.strategy}


def peak_memory() -> int:
    """Peak memory of this process; rusage would also count that of its parent."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _timed(call: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _in_a_process(length: int) -> dict[str, Any]:
    program = f"import json; from benchmarks.runtime import stream; print(json.dumps(stream({length})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))
