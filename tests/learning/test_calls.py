"""Logs of calls: every format, interleaved sessions, large arguments, and what is wrong said in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exactstate.errors import BrokenFile
from exactstate.learning.calls import MAX_VALUE, Call, read_calls


def written(tmp_path: Path, *lines: object) -> Path:
    path = tmp_path / "calls.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def test_read_calls_takes_whole_traces(tmp_path: Path) -> None:
    calls = ["login", {"name": "pay", "arguments": {"amount": 9}}]
    first, second = read_calls(written(tmp_path, {"calls": calls, "label": "ok"}, "a b => failed"))
    assert first.calls == [Call("login"), Call("pay", {"amount": 9})]
    assert (first.label, first.line) == ("ok", 1)
    assert ([call.name for call in second.calls], second.label, second.line) == (["a", "b"], "failed", 2)


def test_read_calls_sorts_out_interleaved_sessions(tmp_path: Path) -> None:
    lines = [{"trace": key, "name": name, "time": time} for key, name, time in
             (("s", "a", 1), ("t", "x", 1.5), ("s", "b", "2026-01-01T00:00:00+00:00"), ("t", "y", 2))]  # fmt: skip
    one, other = read_calls(written(tmp_path, *lines, {"trace": "t", "label": "attack"}))
    assert [call.name for call in one.calls] == ["a", "b"]
    assert one.calls[1].time == 1767225600.0
    assert ([call.name for call in other.calls], other.label, other.key) == (["x", "y"], "attack", "t")


def test_read_calls_takes_spans_in_the_order_of_their_start(tmp_path: Path) -> None:
    def span(name: str, start: int, **attributes: object) -> dict[str, object]:
        listed = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
        return {"traceId": "t", "name": name, "startTimeUnixNano": str(start), "attributes": listed}

    tool = {"gen_ai.tool.name": "pay", "gen_ai.tool.call.arguments": '{"amount": 9, "to": ["x"]}'}
    spans = [span("execute_tool pay", 2_000_000_000, **tool), span("login", 1_000_000_000, user="u")]
    (trace,) = read_calls(written(tmp_path, {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    assert trace.calls == [Call("login", {"user": "u"}, 1.0), Call("pay", {"amount": 9, "to": '["x"]'}, 2.0)]
    assert read_calls(written(tmp_path, *spans))[0].calls == trace.calls
    model = {**span("chat", 1_500_000_000), "attributes": {"gen_ai.operation.name": "chat"}}
    (again,) = read_calls(written(tmp_path, {"trace": "t", "label": "ok"}, *spans, model))
    assert (again.calls, again.label, again.key) == (trace.calls, "ok", "t")


def test_read_calls_keeps_equal_long_arguments_equal(tmp_path: Path) -> None:
    long = ["x" * (1 << 21), "x" * (1 << 21), "x" * (1 << 21) + "y"]
    (trace,) = read_calls(written(tmp_path, {"calls": [{"name": "put", "arguments": {"text": text}} for text in long]}))
    one, same, other = (str(call.arguments["text"]) for call in trace.calls)
    assert one == same != other
    assert len(other) <= MAX_VALUE


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (['{"calls": ["a"]'], "line 1: this is not JSON"),
        ([{"calls": [3]}], "line 1: a call is a name or an object with a name; got 3"),
        ([{"trace": "s", "arguments": {}}], "a call has a name"),
        ([{"name": "a"}], 'wanted "calls" for a whole trace'),
        ([{"trace": "s", "name": "a", "time": "soon"}], "a time is a number of seconds or an ISO date; got 'soon'"),
        ([{"calls": ["a"], "label": 3}], "a label is a word such as ok or attack; got 3"),
        ([{"trace": "s", "name": "a", "label": "ok"}, {"trace": "s", "label": "bad"}],
         "line 2: trace 's' is 'bad' here and 'ok' in line 1; keep one label"),
        ([{"trace": "s", "name": "a", "time": "1e400"}], "a time is a number of seconds or an ISO date; got .1e400"),
        ([{"resourceSpans": [3]}], "line 1: its spans are not as OpenTelemetry's JSON has them"),
        ([{"traceId": "t", "attributes": [{"key": "a"}]}], "its spans are not as OpenTelemetry's JSON has them"),
        ([{"calls": []}], "there is no call in it"),
        ([], "there is no call in it"),
    ],
)  # fmt: skip
def test_read_calls_says_what_is_wrong(tmp_path: Path, lines: list[object], sentence: str) -> None:
    with pytest.raises(BrokenFile, match=sentence):
        read_calls(written(tmp_path, *lines))
