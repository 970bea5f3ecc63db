"""`exactstate monitor`: a monitor from traces of calls, and traces watched by a monitor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactstate.cli._machines import read_any
from exactstate.cli._output import AsJson, print_json, print_text
from exactstate.errors import InvalidConfig

if TYPE_CHECKING:
    from exactstate.learning.calls import CallTrace
    from exactstate.learning.monitor import Monitor


def monitor(
    traces: Annotated[Path, typer.Argument(metavar="TRACES", help="JSON lines, OpenTelemetry spans, or names.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The monitor: .json or .exactstate.")
    ] = None,
    watch: Annotated[
        Path | None, typer.Option(metavar="MONITOR", help="Watch the traces with this monitor instead of learning.")
    ] = None,
    events: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What of a call is read. Default: its name.")
    ] = None,
    propose: Annotated[bool, typer.Option("--propose", help="Print events proposed from the traces.")] = False,
    policy: Annotated[Path | None, typer.Option(metavar="FILE", help="Rules whose breach is forbidden.")] = None,
    machine: Annotated[
        str | None, typer.Option(metavar="MACHINE", help="Use the states of this machine instead of merging.")
    ] = None,
    false_alarms: Annotated[float, typer.Option(help="The share of good traces that may be reported.")] = 0.01,
    held_out: Annotated[float, typer.Option(help="The share of traces that choose the threshold.")] = 0.25,
    seed: Annotated[int, typer.Option(min=0, help="Which traces are held out.")] = 42,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Learn a monitor from traces of calls, such as an agent's tool calls; or watch traces with one.

    A trace is the calls of a session, with or without a label of how it ended: ok, failed, attack. A line is a call
    (`{"trace": "s1", "name": "pay", "arguments": {"amount": 9}}`), a trace (`{"calls": [...], "label": "ok"}`), an
    OpenTelemetry span, or names (`login pay => ok`). The monitor says of each call whether it is allowed, unexpected or
    forbidden, with a score and the reason. With --watch the exit code is 1 when some call is not allowed.

    The file is a machine: `convert` makes C, JavaScript, a grammar or a picture of it, and
    `certify MONITOR --policy FILE` proves its policies.

    Examples:

        exactstate monitor calls.jsonl -o monitor.json
        exactstate monitor calls.jsonl --propose
        exactstate monitor calls.jsonl --events events.toml -o paid.json
        exactstate monitor calls.jsonl --policy rules.txt -o strict.json
        exactstate monitor today.jsonl --watch monitor.json
    """
    from exactstate.learning.calls import read_calls

    if watch is not None:
        if output or events or policy or machine or propose:
            raise InvalidConfig("--watch takes traces and a monitor, and nothing to learn with.")
        from exactstate.learning.monitor import Monitor

        raise typer.Exit(_watch(read_calls(traces), Monitor.load(watch), as_json))
    from exactstate.automata.policy import read_policies
    from exactstate.learning.events import Events
    from exactstate.learning.events import propose as proposed
    from exactstate.learning.monitor import learn_monitor

    read = read_calls(traces)
    if propose:
        print_text(proposed(read).to_toml().rstrip() or "# names alone")
        return
    learned = learn_monitor(
        read, Events.read(events) if events else None, policies=read_policies(policy) if policy else (),
        machine=None if machine is None else read_any(machine).to_mealy(), false_alarms=false_alarms,
        held_out=held_out, seed=seed,
    )  # fmt: skip
    if output is not None:
        learned.save(output)
    if as_json:
        print_json({
            "states": learned.machine.n_states, "symbols": list(learned.machine.symbols),
            "threshold": learned.threshold, "policies": [rule.text for rule in learned.policies],
            "notes": list(learned.notes), "file": None if output is None else str(output),
        })  # fmt: skip
    else:
        print_text(learned.explain())
        print_text(f"written to {output}" if output is not None else "not written; give -o FILE to keep it")


def _watch(traces: list[CallTrace], watched_by: Monitor, as_json: bool) -> int:
    """Report every call that is not allowed; the exit code."""
    from exactstate.learning.monitor import ALLOWED

    rows: list[dict[str, object]] = []
    calls = backwards = 0
    for number, trace in enumerate(traces, start=1):
        watch = watched_by.watch()
        steps = [(call.name, watch(call)) for call in trace.calls]
        calls += len(steps)
        backwards += watch.session.backwards
        for place, (name, found) in enumerate([*steps, ("its end", watch.end())], start=1):
            if found.verdict != ALLOWED:
                rows.append({
                    "trace": trace.key or str(number), "line": trace.line, "call": place, "name": name,
                    "verdict": found.verdict, "score": found.score, "reason": watched_by.reason(found),
                })  # fmt: skip
    if as_json:
        print_json({"traces": len(traces), "calls": calls, "clock_went_back": backwards, "reported": rows})
    else:
        by_trace: dict[object, list[dict[str, object]]] = {}
        for row in rows:
            by_trace.setdefault((row["line"], row["trace"]), []).append(row)
        for first, *later in by_trace.values():
            more = f"; and {len(later)} more calls" if later else ""
            print_text(
                f"line {first['line']}, trace {first['trace']}, call {first['call']}: {first['name']} is "
                f"{first['verdict']} ({first['score']:g}): {first['reason']}{more}"
            )
        if backwards:
            print_text(f"the clock went back {backwards:,} times, which counts as no wait")
        print_text(f"{len(traces):,} traces with {calls:,} calls; {len(by_trace):,} have calls that are not allowed")
    return 1 if rows else 0
