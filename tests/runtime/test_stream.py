"""A stream says what one long run says, however it is cut, and goes on from a saved position."""

from __future__ import annotations

import json

import numpy as np
import pytest

from exactstate.automata import cyclic
from exactstate.errors import InvalidWord
from exactstate.runtime import Machine
from exactstate.runtime.stream import fingerprint
from tests.runtime import examples


def test_push_of_any_size() -> None:
    rng = np.random.default_rng(0)
    machine = examples.forgetful(12, 57, rng)
    word = rng.integers(0, 12, 100_000).astype(np.uint8)
    said, states = examples.one_by_one(machine, word)
    stream = machine.stream()
    cuts = np.sort(rng.integers(0, len(word), 40))
    heard = list(stream.pull(np.split(word, cuts)))
    assert np.array_equal(np.concatenate(heard), said)
    assert (stream.state, stream.symbols_read) == (states[-1], len(word))


def test_skip_reads_without_outputs() -> None:
    machine = Machine.of(cyclic(7))
    stream = machine.stream()
    assert stream.skip([3, 5]) == 1
    assert stream.push([1]).tolist() == [2]
    assert stream.symbols_read == 3


def test_pull_is_lazy() -> None:
    stream = Machine.of(cyclic(3)).stream()
    asked = []

    def chunks():
        for i in range(3):
            asked.append(i)
            yield [1]

    answers = stream.pull(chunks())
    assert asked == []
    assert next(answers).tolist() == [1]
    assert asked == [0]


def test_position_is_a_small_json_object() -> None:
    rng = np.random.default_rng(1)
    machine = examples.m11(rng)
    word = rng.integers(0, 4, 5000)
    whole = machine.output_ids(word)
    stream = machine.stream()
    stream.push(word[:1234])
    saved = json.dumps(stream.position)
    assert len(saved) < 200
    later = examples.m11(np.random.default_rng(1)).stream(json.loads(saved))
    assert later.symbols_read == 1234
    assert np.array_equal(later.push(word[1234:]), whole[1234:])
    assert "after 5000 symbols in state" in repr(later)


def test_push_refused_changes_nothing() -> None:
    stream = Machine.of(cyclic(3)).stream()
    stream.push([1])
    before = stream.position
    for bad in ([1, 3], np.array([[1]]), "x"):
        with pytest.raises(InvalidWord):
            stream.push(bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidWord):
            stream.skip(bad)  # type: ignore[arg-type]
    assert stream.position == before


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"state": 3}, "the state of the position is 3; wanted"),
        ({"state": -1}, "the state of the position is -1"),
        ({"state": True}, "the state of the position is True"),
        ({"state": 1.0}, "the state of the position is 1.0"),
        ({"symbols_read": -5}, "the symbols_read of the position is -5"),
        ({"machine": "0" * 32}, "was saved by another machine"),
        ({"more": 1}, "a position has the entries machine, state and symbols_read"),
    ],
)
def test_stream_at_checks_positions(change: dict[str, object], sentence: str) -> None:
    machine = Machine.of(cyclic(3))
    with pytest.raises(InvalidWord, match=sentence):
        machine.stream({**machine.stream().position, **change})
    with pytest.raises(InvalidWord, match="a position has the entries"):
        machine.stream(["state"])  # type: ignore[arg-type]


def test_fingerprint_distinguishes_machines() -> None:
    rng = np.random.default_rng(2)
    machines = [examples.anything(2, 4, rng) for _ in range(20)] + [Machine.of(cyclic(n)) for n in range(2, 9)]
    assert len({fingerprint(machine) for machine in machines}) == len(machines)
