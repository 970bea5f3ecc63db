"""Monitor a log with a certified machine: as a stream, in constant memory, resumed from a saved position.

The protocol: connect, log in, ask any number of times, leave. An event out of order raises an alarm until the
connection is dropped. The network is not needed to monitor the log.

    python examples/stream_a_log.py
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import exactstate
from exactstate.certify.check import check
from exactstate.runtime import load

EVENTS = ("connect", "login", "ask", "leave", "drop")
NEXT = {
    "idle": {"connect": "greeted"},
    "greeted": {"login": "open"},
    "open": {"ask": "open", "leave": "idle"},
    "alarm": {},
}


def protocol() -> exactstate.Moore:
    """An event out of order leads to `alarm`; a dropped connection leads back to `idle`."""
    states = tuple(NEXT)
    tables = [
        [states.index("idle" if event == "drop" else NEXT[state].get(event, "alarm")) for state in states]
        for event in EVENTS
    ]
    return exactstate.Moore(symbols=EVENTS, tables=tables, states=states, outputs=states, readout=range(len(states)))


def log(lines: int, generator: np.random.Generator) -> Iterator[str]:
    """Mostly in order, sometimes not."""
    state = "idle"
    for _ in range(lines):
        allowed = [*NEXT[state]] or ["drop"]
        event = str(generator.choice(allowed if generator.random() < 0.999 else EVENTS))
        state = "idle" if event == "drop" else NEXT[state].get(event, "alarm")
        yield event


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = exactstate.train(protocol(), width=32, out=Path(folder) / "run")
        assert run.certified, run.verdict.explain()
        assert check(Path(folder) / "run" / "certificate.json")
        machine = load(Path(folder) / "run" / "machine.json")

    alarm, alarms, stream = machine.output_names.index("alarm"), [], machine.stream()
    events = list(log(20_000, np.random.default_rng(0)))
    for begin in range(0, len(events), 500):  # in pieces
        outputs = stream.push(events[begin : begin + 500])
        alarms += (begin + np.flatnonzero(outputs == alarm)).tolist()
        if begin == 10_000:  # save the position and resume from it
            stream = machine.stream(json.loads(json.dumps(stream.position)))
    for number in alarms[:3]:
        print(f"event {number:,}: {events[number]!r} after {events[number - 1]!r}: alarm")
    now = machine.states[stream.state]
    print(f"{stream.symbols_read:,} events read, {len(alarms)} of them in state alarm; now {now}")
    assert len(alarms) == machine.outputs(events).count("alarm")


if __name__ == "__main__":
    main()
