"""`python -m paper.experiments.outputs`: learn machines of many kinds from their outputs alone, one row per run.

Rows are appended to `results/outputs.jsonl` as runs end; a run whose row is there is not done again. Among the machines
are some whose states hardly show in what is heard: locks that answer one word alone, outputs that few states have.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from detent import records
from detent.automata import Moore, minimize, tomita
from detent.errors import NotLearned
from detent.learning import infer_machine
from detent.tasks import OutputTask, Task
from detent.tasks import task as get_task
from detent.train import train

SEEDS = (42, 43, 44)
SAYS = ("no", "yes")


def kinds() -> Iterator[tuple[str, Moore]]:
    """Machines by name."""
    yield from ((f"Tomita{k}", tomita(k)) for k in range(1, 8))
    for n, A in ((10, 2), (10, 3), (30, 2), (30, 3), (60, 2), (100, 2)):
        yield f"random, {n} states, {A} symbols", random_machine(n, A, 42)
    for name in ("Z16", "S4", "A5", "S5"):
        yield f"{name} in two colours", coloured(name)
    for n in (10, 30):
        yield f"random, {n} states, one says yes", random_machine(n, 2, 42, rare=True)
    for n in (4, 8, 12, 16):
        yield f"lock of {n} symbols", lock(n)


def random_machine(n: int, A: int, seed: int, *, rare: bool = False) -> Moore:
    """Moves and outputs drawn at random; with `rare`, a single state says yes."""
    generator = np.random.default_rng(seed)
    tables = generator.integers(0, n, (A, n))
    readout = (np.arange(n) == n - 1).astype(int) if rare else generator.integers(0, 2, n)
    return Moore(symbols=tuple("abc"[:A]), tables=tables, outputs=SAYS, readout=readout)


def coloured(name: str) -> Moore:
    """A group of which a single bit is heard."""
    machine = get_task(name).machine
    readout = np.random.default_rng(42).integers(0, 2, machine.n_states)
    return Moore(symbols=machine.symbols, tables=machine.tables, outputs=SAYS, readout=readout)


def lock(n: int) -> Moore:
    """Says yes for ever after n times 'a' in a row; any 'b' before that begins again."""
    onward = np.minimum(np.arange(n + 1) + 1, n)
    return Moore(
        symbols=("a", "b"), tables=np.stack([onward, np.where(np.arange(n + 1) == n, n, 0)]), outputs=SAYS,
        readout=(np.arange(n + 1) == n).astype(int),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m paper.experiments.outputs", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=Path, default=Path("results/outputs.jsonl"), metavar="FILE")
    asked = parser.parse_args()
    done = {(row["kind"], row["seed"]) for row in records.read(asked.rows)} if asked.rows.exists() else set()
    for kind, machine in kinds():
        for seed in SEEDS:
            if (kind, seed) not in done:
                row = learned(kind, machine, seed)
                records.append(asked.rows, {**row, **records.stamp()})
                print(f"{kind}, seed {seed}: {row['verdict'][:100]} ({row['seconds']} s)", flush=True)


def learned(kind: str, machine: Moore, seed: int) -> dict[str, Any]:
    """What came of a machine whose outputs alone were heard."""
    task = Task.of(machine, name=kind)
    row = {
        "kind": kind, "seed": seed, "symbols": machine.n_symbols, "states": minimize(machine).n_states,
        "certified": False, "words": None, "heads": None, "steps": None, "restarts": None, "proved": [],
    }  # fmt: skip
    begun = time.perf_counter()
    try:
        run = train(task, seed=seed, supervise="outputs")
    except NotLearned as error:
        return {**row, "verdict": str(error), "seconds": round(time.perf_counter() - begun, 3)}
    row |= {
        "certified": run.certified, "heads": list(run.heads), "steps": run.steps, "restarts": run.restarts,
        "seconds": round(run.seconds, 3), "verdict": run.verdict.explain(),
        "proved": list(run.certificate().proved) if run.certified else [],
        "words": infer_machine(OutputTask.of_task(task), np.random.default_rng(seed)).words,
    }  # fmt: skip
    return row


if __name__ == "__main__":
    main()
