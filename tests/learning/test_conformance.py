"""Logs against machines: the first departure with its line, coverage of every transition."""

from __future__ import annotations

from exactstate.automata import tomita
from exactstate.learning.conformance import conform
from exactstate.learning.logs import Trace, as_traces, at_end
from tests.learning.machines import handshake, traces_of


def test_conform_counts_transitions():
    machine = handshake()
    found = conform(machine, as_traces(traces_of(machine, 200, 10, 1)))
    assert found
    assert (found.traces, found.symbols, int(found.covered.sum())) == (200, 2000, 2000)
    assert found.coverage == (found.covered > 0).mean()
    assert sum(row["count"] for row in found.rows()) == 2000
    assert found.explain().startswith("conforms: 200 traces with 2,000 symbols")


def test_conform_names_the_first_departure():
    machine = handshake()
    log = [
        Trace(["hello"], ["ack"], None, 3),
        Trace(["hello", "key", "data"], ["ack", "ack", "echo"], None, 4),
        Trace(["ping"], ["pong"], None, 5),
    ]
    found = conform(machine, log)
    assert not found
    assert found.departing == 2
    assert found.explain().startswith(
        "departs: line 4: after 'hello key data' the machine outputs 'closed' (in state key), the log has 'echo'."
    )
    first = conform(machine, log[2:]).first
    assert first is not None
    assert first.explain() == "line 5: input 1 is 'ping', which the machine does not read (in state start)"


def test_conform_of_a_dfa_reads_labels():
    machine = tomita(4)
    assert conform(machine, [at_end(["0", "0"], "1", 1), at_end(["0", "0", "0"], "false", 2), at_end([], "accept", 3)])
    assert conform(machine, [at_end([], "0", 7)]).first is not None
