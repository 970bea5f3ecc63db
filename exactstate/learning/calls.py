"""Read logs of calls, such as an agent's tool calls: JSON lines, OpenTelemetry spans, plain text.

A trace is the calls of one session, in order, and how it ended, if that is known. The formats, told by the first line:

- a call on each line: `{"trace": "s1", "name": "pay", "arguments": {"amount": 9}, "time": 3.5}`; sessions may be
  interleaved. A line with a label and no name says how its trace ended: `{"trace": "s1", "label": "ok"}`.
- a trace on each line: `{"calls": ["login", {"name": "pay", "arguments": {...}}], "label": "attack"}`.
- OpenTelemetry: a span, or an export with `resourceSpans`, on each line. Calls are ordered by their start; the tool and
  its arguments are read from `gen_ai.tool.name` and `gen_ai.tool.call.arguments` where a span has them. Spans with a
  `gen_ai.operation.name` other than `execute_tool`, such as those of the model, are no calls.
- plain text: the names of a trace on each line, between blanks; `=> label` at its end.

Long arguments are kept as a digest, so that equal ones stay equal and no trace outgrows the memory.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

from exactstate.errors import BrokenFile
from exactstate.learning.logs import _lines, _open
from exactstate.records import InvalidJson, parse_strict_json

MAX_VALUE = 200
"""Letters of the longest argument that is kept as it is."""
NAMES = ("gen_ai.tool.name", "name", "tool", "function", "call", "event")
TRACES = ("trace", "trace_id", "traceId", "session", "session_id", "conversation_id")
TIMES = ("time", "timestamp", "start_time", "startTimeUnixNano")
ARGUMENTS = ("gen_ai.tool.call.arguments", "arguments", "args", "input", "attributes")
TOOL_CALL = "execute_tool"
"""The operation of a span that is a call of a tool."""
Value = str | float | bool | None


class Call(NamedTuple):
    """A call: its name, its arguments, and when it was made, in seconds."""

    name: str
    arguments: Mapping[str, Value] = {}
    time: float | None = None


@dataclass
class CallTrace:
    """The calls of a session, and how it ended."""

    calls: list[Call] = field(default_factory=list)
    label: str | None = None
    """ok, or how it went wrong; None where that is not known."""
    line: int = 0
    """Where it begins in the log, from 1."""
    key: str | None = None
    spans: bool = False
    """Whether its calls are spans, which are written when they end."""


def read_calls(path: str | os.PathLike[str]) -> list[CallTrace]:
    """The traces of a log of calls, in the order in which they begin."""
    traces: dict[str | int, CallTrace] = {}  # by the key of the trace, or by the line that is a whole one
    labeled: dict[str, int] = {}
    with _open(path, None) as file:
        lines = ((number, line) for number, line in _lines(file, path) if line.strip())
        for number, line in lines:
            if not line.lstrip().startswith("{"):
                names, arrow, label = line.partition("=>")
                calls = [Call(name) for name in names.split()]
                traces[number] = CallTrace(calls, label.strip() or None if arrow else None, number)
                continue
            try:
                entries = parse_strict_json(line)
            except InvalidJson as error:
                raise BrokenFile(path, f"this is not JSON: {error.reason}.", number) from None
            try:
                for entry in _spans(entries):
                    _add(traces, labeled, entry, number)
            except ValueError as error:
                raise BrokenFile(path, f"{error}.", number) from None
            except (AttributeError, LookupError, TypeError):
                raise BrokenFile(path, "its spans are not as OpenTelemetry's JSON has them.", number) from None
    if not any(trace.calls for trace in traces.values()):
        raise BrokenFile(path, "there is no call in it.")
    for trace in traces.values():
        if trace.spans:
            trace.calls.sort(key=lambda call: call.time or 0.0)
    return list(traces.values())


def _spans(entries: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The spans of an export; otherwise the line itself."""
    if not isinstance(entries.get("resourceSpans"), list):
        yield entries
        return
    for resource in entries["resourceSpans"]:
        for scope in resource.get("scopeSpans", []):
            yield from scope.get("spans", [])


def _add(
    traces: dict[str | int, CallTrace], labeled: dict[str, int], entry: dict[str, Any], number: int
) -> None:  # fmt: skip
    entry = _with_attributes(entry)
    whole = next((entry[key] for key in ("calls", "inputs") if isinstance(entry.get(key), list)), None)
    label = entry.get("label", entry.get("output"))
    if label is not None and not isinstance(label, str):
        raise ValueError(f"a label is a word such as ok or attack; got {label!r:.40}")
    if whole is not None:
        traces[number] = CallTrace([as_call(call) for call in whole], label, number)
        return
    key = next((str(entry[name]) for name in TRACES if entry.get(name) is not None), None)
    if key is None:
        raise ValueError('wanted "calls" for a whole trace, or "trace" and "name" for a call')
    trace = traces.setdefault(key, CallTrace([], None, number, key))
    if label is not None:
        if trace.label not in (None, label):
            raise ValueError(
                f"trace {key!r:.60} is {label!r} here and {trace.label!r} in line {labeled[key]}; keep one label"
            )
        trace.label, labeled[key] = label, number
    trace.spans |= "startTimeUnixNano" in entry
    is_call = entry.get("gen_ai.operation.name", TOOL_CALL) == TOOL_CALL
    if is_call and (label is None or any(isinstance(entry.get(name), str) for name in NAMES)):
        trace.calls.append(as_call(entry))


def as_call(entry: Any) -> Call:
    """A call from its name, from an entry of a log, or from a span."""
    if isinstance(entry, Call):
        return entry
    if isinstance(entry, str):
        return Call(entry)
    if not isinstance(entry, Mapping):
        raise ValueError(f"a call is a name or an object with a name; got {entry!r:.60}")
    merged = _with_attributes(entry)
    name = next((merged[key] for key in NAMES if isinstance(merged.get(key), str)), None)
    if not name:
        raise ValueError(f"a call has a name; got {dict(entry)!s:.60}")
    given: Any = next((merged[key] for key in ARGUMENTS if merged.get(key) is not None), {})
    if isinstance(given, str):
        try:
            given = parse_strict_json(given)
        except InvalidJson:
            given = {"input": given}
    if not isinstance(given, Mapping):
        given = {"input": given}
    time = next((merged[key] for key in TIMES if merged.get(key) is not None), None)
    nanoseconds = "startTimeUnixNano" in merged and not any(key in merged for key in TIMES[:3])
    return Call(name, {str(key): _value(value) for key, value in given.items()}, _seconds(time, nanoseconds))


def _with_attributes(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with the attributes of a span beside its own keys."""
    attributes = entry.get("attributes")
    if isinstance(attributes, list):  # OTLP: [{"key": "a", "value": {"stringValue": "b"}}]
        attributes = {item["key"]: next(iter(item["value"].values()), None) for item in attributes}
    return {**entry, "attributes": attributes, **attributes} if isinstance(attributes, Mapping) else dict(entry)


def _value(value: Any) -> Value:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(text) <= MAX_VALUE:
        return text
    return f"{len(text)} letters, {sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _seconds(time: Any, nanoseconds: bool) -> float | None:
    if time is None:
        return None
    try:
        seconds = float(time) * (1e-9 if nanoseconds else 1.0)
        if math.isfinite(seconds):
            return seconds
        raise ValueError
    except (TypeError, ValueError, OverflowError):
        try:
            return datetime.fromisoformat(str(time)).timestamp()
        except (ValueError, OverflowError):
            raise ValueError(f"a time is a number of seconds or an ISO date; got {time!r:.40}") from None
