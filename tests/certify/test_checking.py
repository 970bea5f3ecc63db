"""A certificate is accepted as it is, and refused with a reason once anything in it was changed.

Two hands change it: one that leaves the seal alone, so that every single value is guarded; and one that seals it anew,
so that what the certificate says has to contradict itself.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from detent.certify.certificate import sealed
from detent.certify.check import check
from tests.certify.making import MAKERS, certificate

Way = tuple[Any, ...]


def leaves(value: Any, way: Way = ()) -> Iterator[Way]:
    """The ways to all plain values."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*way, key))
    else:
        yield way


def groups(value: Any, way: Way = ()) -> Iterator[Way]:
    """The ways to all lists and objects."""
    if isinstance(value, dict | list):
        yield way
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from groups(item, (*way, key))


def at(content: Any, way: Way) -> Any:
    for key in way:
        content = content[key]
    return content


def changed(content: dict[str, Any], way: Way, value: Any) -> dict[str, Any]:
    """A copy with one value replaced."""
    other = copy.copy(content)
    inside = other
    for key in way[:-1]:
        inside[key] = copy.copy(inside[key])
        inside = inside[key]
    inside[way[-1]] = value
    return other


def others(value: Any) -> list[Any]:
    """Values that a leaf could be turned into."""
    if isinstance(value, str):
        return [value + "x", "", 7]
    if isinstance(value, float):
        return [value + 1e-12, value * 2, -value, 0.0 if value else 1.0, int(value), None]
    if isinstance(value, int):
        return [value + 1, value - 1, value + 1000, float(value), str(value), None]
    assert value is None
    return [0, 0.5, "", []]


def refused(content: dict[str, Any]) -> tuple[str, ...]:
    report = check(content)
    assert bool(report) == (not report.findings)
    return report.findings


@pytest.mark.parametrize("name", MAKERS)
def test_what_was_written_is_accepted(name: str) -> None:
    content = certificate(name)
    assert refused(content) == ()
    assert refused(json.loads(json.dumps(content))) == ()
    assert content["proved"] == ["float32", "float16"]


@pytest.mark.parametrize("name", ["S3", "Tomita4"])
def test_every_value_is_guarded(name: str) -> None:
    content = certificate(name)
    ways = list(leaves(content))
    assert len(ways) > 100
    for way in ways:
        for value in others(at(content, way)):
            assert refused(changed(content, way, value)), (way, value)


def test_every_value_of_a_story_is_guarded() -> None:
    content = certificate("TSO2")
    ways = list(leaves(content))
    rng = np.random.default_rng(11)
    for i in rng.choice(len(ways), 60, replace=False):
        value = rng.choice(np.array(others(at(content, ways[i])), object))
        assert refused(changed(content, ways[i], value)), (ways[i], value)


@pytest.mark.slow
def test_every_value_of_a_story_is_guarded_one_by_one() -> None:
    content = certificate("TSO2")
    for way in leaves(content):
        assert refused(changed(content, way, others(at(content, way))[0])), way


def told_elsewhere(way: Way) -> bool:
    """Entries that nothing in the file can contradict: names, versions, digests, margins and errors that still do."""
    return way[0] in ("name", "made", "weights", "evaluated", "symbols", "sha256", "margins") or (
        way[0] == "rounding"
        or way[-1] in ("says",)
        or (len(way) > 1 and way[1] in ("states", "outputs", "answers", "places"))
    )


@pytest.mark.parametrize("name", ["S3", "Tomita4"])
def test_a_new_seal_hides_nothing_that_counts(name: str) -> None:
    """Every number of the machine, the target and the matching, turned into every neighbour, and sealed anew."""
    content = certificate(name)
    ways = [way for way in leaves(content) if not told_elsewhere(way)]
    assert {way[0] for way in ways} >= {
        "reach", "target", "layers", "configurations", "readout", "matching", "counts", "proved", "format", "version",
    }  # fmt: skip
    for way in ways:
        if way[0] in ("format", "version"):
            continue  # what is read at all is another matter
        for value in others(at(content, way)):
            reasons = refused(sealed(changed(content, way, value)))
            assert len(reasons) == 1, (way, value)
            assert "SHA-256" not in reasons[0]


STORY_PARTS = ("layers", "configurations", "readout", "replies", "matching", "counts", "reach", "proved")


def test_a_new_seal_hides_nothing_in_a_story() -> None:
    content = certificate("TSO2")
    ways = [way for way in leaves(content) if way[0] in STORY_PARTS]
    rng = np.random.default_rng(12)
    for i in rng.choice(len(ways), 150, replace=False):
        value = rng.choice(np.array(others(at(content, ways[i])), object))
        assert refused(sealed(changed(content, ways[i], value))), (ways[i], value)


@pytest.mark.slow
def test_a_new_seal_hides_nothing_in_a_story_one_by_one() -> None:
    content = certificate("TSO2")
    for way in leaves(content):
        if way[0] in STORY_PARTS:
            for value in others(at(content, way))[:2]:
                assert refused(sealed(changed(content, way, value))), (way, value)


@pytest.mark.parametrize("name", ["S3", "Tomita4"])
def test_lists_and_objects_are_whole(name: str) -> None:
    """Something taken away, something added, two neighbours exchanged: refused, whoever seals it."""
    content = certificate(name)
    for way in groups(content):
        value = at(content, way)
        if not way or way[0] == "sha256" or not value:
            continue
        if isinstance(value, dict):
            first = next(iter(value))
            rest = {key: item for key, item in value.items() if key != first}
            variants = [rest, value | {"more": 0}] if way != ("rounding",) else []
        else:
            variants = [value[:-1], [*value, value[-1]], [*value, 0], [value]]
        for variant in variants:
            assert refused(changed(content, way, variant)), way
            if not (way[-1] == "assumes" and isinstance(variant, list)):
                assert refused(sealed(changed(content, way, variant))), (way, variant)
    for key in content:
        less = {name: item for name, item in content.items() if name != key}
        assert refused(less)
        if key != "sha256":
            assert refused(sealed(less))
    assert refused(sealed(content | {"more": 1})) == (
        "the certificate has an entry 'more' that does not belong there.",
    )


def recipe(name: str, **changes: Any) -> str:
    """The one reason against a certificate that was changed here and there and sealed anew."""
    content = certificate(name)
    for way, value in changes.items():
        keys = tuple(int(key) if key.isdigit() else key for key in way.split("__"))
        content = changed(content, keys, value)
    (reason,) = refused(sealed(content))
    return reason


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("S3", {"layers__0__start__0": 1}, "configurations[0] is [0, 0, 0]; the heads begin at [1, 0, 0]."),
        ("S3", {"layers__0__tables__0__0__0": 3}, "lead to [3, 1, 0], which is not among configurations."),
        ("S3", {"layers__0__tables__0__0__3": 2}, "layers[0].tables[0][0][3] is never used; wanted -1."),
        ("S3", {"layers__0__tables__0__0__0": -1}, "layers[0].tables[0][0][0] is -1, but it is used."),
        ("S3", {"layers__0__tables__0__0__0": 4}, "is 4; wanted a whole number from -1 to 3."),
        ("S3", {"layers__0__tables__0__0__0": True}, "is True; wanted a whole number from -1 to 3."),
        ("S3", {"readout__2__0": 0}, "readout[2][0] says 'e'; the target, beside it in matching[2], wants '(0 1 2)'."),
        ("S3", {"matching__0__1": 1}, "matching[0] is [0, 1, 0]; the starts are [0, 0, 0]."),
        ("S3", {"matching__3__1": 0}, "which is not among matching."),
        ("S3", {"target__start": 1}, "matching[0] is [0, 0, 0]; the starts are [0, 1, 0]."),
        ("S3", {"target__tables__0__0": 2}, "matching[0] and the symbol '(0 1)' lead to [1, 2, 0]"),
        ("S3", {"counts__reached": 5}, "counts.reached is 5; there are 6."),
        ("S3", {"counts__joint_indices": 6}, "counts.joint_indices is 6; there are 12."),
        ("S3", {"proved": ["float32", "bfloat16", "float16"]}, "by margins and errors it is ['float32', 'float16']"),
        ("S3", {"margins__logits__0__0__0__0": 3.0}, "proved is ['float32', 'float16']; by margins and errors it is "),
        ("S3", {"margins__logits__0__0__0__0": None}, "is None; wanted a decimal number that is not negative."),
        ("S3", {"margins__logits__0__0__0__3": 4.0}, "is 4.0; wanted null, for nothing is chosen there."),
        ("S3", {"rounding__float32__labels__1": 2.0}, "proved is ['float32', 'float16']"),
        ("S3", {"rounding__float32__labels__1": -1.0}, "is -1.0; wanted a decimal number"),
        ("S3", {"replies": [[]] * 6}, "replies are given, but there is no question."),
        ("S3", {"weights": "0" * 63}, "weights is not a SHA-256 in 64 hexadecimal digits."),
        ("S3", {"evaluated": "bfloat16"}, "evaluated is 'bfloat16'; wanted 'float64' or 'float32'."),
        ("S3", {"symbols__1": "(0 1)"}, "symbols holds '(0 1)' twice."),
        ("S3", {"symbols__1": 5}, "symbols[1] is 5; wanted a string."),
        ("S3", {"reach": 2}, "layers[0].windows[0] is a list of 1; wanted a list of 2."),
        ("S3", {"reach": 1 << 40}, "reach is 1099511627776; wanted a whole number from 1 to 1023."),
        ("S3", {"layers": []}, "layers is empty."),
        ("S3", {"layers__0__windows": []}, "layers[0] has no inputs or no windows."),
        ("S3", {"layers__0__inputs": [[1], [0]]}, "layers[0].inputs are not the 2 symbols in order."),
        ("S3", {"layers__0__heads": []}, "layers[0].heads is empty."),
        ("S3", {"layers": {}}, "layers is an object; wanted a list."),
        ("S3", {"target": []}, "target is a list of 0; wanted an object."),
        ("S3", {"target__says": "letters"}, "target.says is 'letters'; wanted 'states' or 'outputs'."),
        ("S3", {"configurations": []}, "configurations is empty."),
        ("S3", {"matching": []}, "matching is empty."),
        ("S3", {"rounding": []}, "rounding is not an object."),
        ("Tomita4", {"target__readout__0__0": 0}, "readout[0][0] says 'accept'; the target, beside it"),
        ("TSO2", {"grammar__start": 3}, "the heads begin at"),
        ("TSO2", {"grammar__refused": [0] * 18}, "grammar.refused is a list of 18; wanted a list of"),
        ("TSO2", {"question__start": 1}, "matching[0] is [0, 0, 0]; the starts are [0, 0, 1]."),
    ],
)  # fmt: skip
def test_reasons(name: str, changes: dict[str, Any], reason: str) -> None:
    assert reason in recipe(name, **changes)


def test_what_no_word_leads_to_is_not_listed() -> None:
    content = certificate("S3")
    content["configurations"].append([3, 0])
    content["readout"].append([0, 0])
    assert "layers[0].tables[0][0][3] is -1, but it is used" in refused(sealed(content))[0]
    content = certificate("Tomita4")
    content["matching"].append([0, 1])
    assert "which is not among matching" in refused(sealed(content))[0]


def test_two_different_things_are_never_said_at_the_same_input_and_indices() -> None:
    """Sent to one state, words of two lengths would be told apart by nothing the network can see."""
    content = certificate("TSO2")
    finals: dict[tuple[int, ...], Way] = {}
    for c, row in enumerate(content["readout"]):
        if len(row) == 1:
            finals.setdefault(tuple(content["configurations"][c]), ("readout", c, 0))
    assert any(
        "at the same input and indices something else is said"
        in refused(sealed(changed(content, way, 11 - at(content, way))))[0]
        for way in finals.values()
    )


def test_nesting_to_the_brim_is_refused() -> None:
    depth: list = []
    for _ in range(100_000):
        depth = [depth]
    assert "lists are nested too deep." in refused(certificate("S3") | {"name": depth})
    while depth:  # taken apart by hand: to forget it all at once would need a deep stack too
        depth = depth.pop()


def test_the_room_brings_nothing_heavy() -> None:
    program = "import sys, detent.certify; sys.exit(int('torch' in sys.modules or 'matplotlib' in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
