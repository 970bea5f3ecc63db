"""Events from calls: arguments as values, ranges and ids; waits; proposals; the file that declares them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exactstate.errors import BrokenFile, InvalidConfig
from exactstate.learning.calls import Call, CallTrace
from exactstate.learning.events import Events, Session, propose

FILE = """
wait = [1, 60]
ignore = ["ping"]

[call.pay]
amount = [100, 1000]
account = "id"
currency = "value"
"""


@pytest.fixture
def events(tmp_path: Path) -> Events:
    (tmp_path / "events.toml").write_text(FILE)
    return Events.read(tmp_path / "events.toml")


def pay(amount: object, account: str | None, time: float | None = None) -> Call:
    return Call("pay", {"amount": amount, "account": account, "currency": "EUR (old)"}, time)  # type: ignore[dict-item]


def test_events_symbols_of_arguments(events: Events) -> None:
    calls = [pay(99, "a"), pay(100, "b"), pay(5000.0, "a"), pay("x", None), Call("ping"), Call("log in")]
    assert events.symbols(calls) == [
        "pay(amount=<100,account=new,currency=EUR%20%28old%29)",
        "pay(amount=100..1000,account=new,currency=EUR%20%28old%29)",
        "pay(amount=>=1000,account=known,currency=EUR%20%28old%29)",
        "pay(amount=none,account=none,currency=EUR%20%28old%29)",
        "log%20in",
    ]


def test_events_waits_are_symbols_and_clocks_may_go_back(events: Events) -> None:
    session = Session(events)
    read = [session.symbols(Call("a", {}, time)) for time in (0.0, 0.5, 30.0, 20.0, 200.0, None)]
    assert read == [["a"], ["a"], ["wait(1..60)", "a"], ["a"], ["wait(>=60)", "a"], ["a"]]
    assert session.backwards == 1


def test_events_know_a_value_from_any_argument_of_an_earlier_call() -> None:
    session = Session(Events(arguments={"refund": {"account": "id"}}))
    calls = [Call("verify", {"account": "a1"}), Call("refund", {"account": "a1"}), Call("refund", {"account": "a2"})]
    assert [session.symbols(call)[0] for call in calls] == ["verify", "refund(account=known)", "refund(account=new)"]


@pytest.mark.parametrize(("value", "shown"), [(10**400, "none"), ("nan", "none"), ("-inf", "<5"), ("7", ">=5")])
def test_events_read_any_number(value: object, shown: str) -> None:
    assert Session(Events(arguments={"a": {"n": (5.0,)}})).symbols(Call("a", {"n": value})) == [f"a(n={shown})"]  # type: ignore[dict-item]


def test_events_file_reads_back(events: Events, tmp_path: Path) -> None:
    (tmp_path / "again.toml").write_text(events.to_toml())
    assert Events.read(tmp_path / "again.toml") == events
    odd = Events(arguments={'a "b".\n\\': {"é\x7f": "id"}}, ignore=("\t",))
    (tmp_path / "odd.toml").write_text(odd.to_toml())
    assert Events.read(tmp_path / "odd.toml") == odd


def test_propose_reads_values_ids_and_ranges() -> None:
    draw = np.random.default_rng(0)
    traces = []
    for n in range(40):
        shown = {"id": f"order {n}", "kind": str(draw.choice(["new", "used"])), "price": float(draw.integers(1, 1000))}
        calls = [Call("show", shown, 0.0), Call("buy", {"id": f"order {n}", "note": f"{n} thanks"}, 5.0)]
        traces.append(CallTrace([*calls, Call("end", {}, 5.1)]))
    found = propose(traces)
    assert found.arguments["show"]["kind"] == "value"
    cuts = found.arguments["show"]["price"]
    assert isinstance(cuts, tuple)
    assert len(cuts) == 3
    assert found.arguments["buy"] == {"id": "id"}
    assert "id" not in found.arguments["show"]
    assert found.wait == (1.0,)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("wait = 3", "wait is \"value\", \"id\", or cuts"),
        ('wait = "value"', "wait is a list of seconds"),
        ("calls = 3", "events have the entries wait, ignore and call; got 'calls'"),
        ("call = 3", "a call is a table of its arguments"),
        ("[call.pay]\namount = [3, 2]", "pay.amount is .* in ascending order"),
        ("[call.pay]\namount = 'name'", "got 'name'"),
        ("[call", "expected '\\]'"),
    ],
)  # fmt: skip
def test_events_say_what_is_wrong(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "events.toml").write_text(text)
    with pytest.raises(BrokenFile, match=sentence):
        Events.read(tmp_path / "events.toml")
    with pytest.raises(BrokenFile, match="no such file"):
        Events.read(tmp_path / "none.toml")
    with pytest.raises(InvalidConfig):
        Events.of({"ignore": "ping"})
