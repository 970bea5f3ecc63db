"""`check`: a certificate is accepted as it was written, and refused with a reason once anything in it was changed.

It is changed in two ways: without a new seal, so that every single value is guarded; and with a new seal, so that the
entries of the certificate have to contradict each other.
"""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactstate.certify.certificate import Certificate, sealed
from exactstate.certify.check import (
    Refused,
    Unreadable,
    check,
    check_regions,
    distances,
    read_bytes,
    region_sentences,
    rounded_down,
)
from tests.certify.certificates import MAKERS, certificate

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
def test_check_accepts_what_was_written(name: str) -> None:
    content = certificate(name)
    assert refused(content) == ()
    assert refused(json.loads(json.dumps(content))) == ()
    assert content["proved"] == ["float32", "float16"]


@pytest.mark.parametrize("name", ["S3", "Tomita4", "regions"])
def test_check_notices_every_changed_value(name: str) -> None:
    content = certificate(name)
    ways = list(leaves(content))
    assert len(ways) > 100
    for way in ways:
        for value in others(at(content, way)):
            assert refused(changed(content, way, value)), (way, value)


def test_check_notices_changed_values_of_a_story() -> None:
    content = certificate("TSO2")
    ways = list(leaves(content))
    rng = np.random.default_rng(11)
    for i in rng.choice(len(ways), 60, replace=False):
        value = rng.choice(np.array(others(at(content, ways[i])), object))
        assert refused(changed(content, ways[i], value)), (ways[i], value)


@pytest.mark.slow
def test_check_notices_every_changed_value_of_a_story() -> None:
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
def test_check_refuses_changes_that_were_sealed_again(name: str) -> None:
    """Every number of the machine, the target and the matching, turned into every neighbour, and sealed anew."""
    content = certificate(name)
    ways = [way for way in leaves(content) if not told_elsewhere(way)]
    assert {way[0] for way in ways} >= {
        "reach", "target", "layers", "configurations", "readout", "matching", "counts", "proved", "format", "version",
    }  # fmt: skip
    for way in ways:
        for value in others(at(content, way)):
            reasons = refused(sealed(changed(content, way, value)))
            assert len(reasons) == 1, (way, value)
            assert "SHA-256" not in reasons[0]


STORY_PARTS = ("layers", "configurations", "readout", "replies", "matching", "counts", "reach", "proved")


def test_check_refuses_changes_in_a_story_that_were_sealed_again() -> None:
    content = certificate("TSO2")
    ways = [way for way in leaves(content) if way[0] in STORY_PARTS]
    rng = np.random.default_rng(12)
    for i in rng.choice(len(ways), 150, replace=False):
        value = rng.choice(np.array(others(at(content, ways[i])), object))
        assert refused(sealed(changed(content, ways[i], value))), (ways[i], value)


@pytest.mark.slow
def test_check_refuses_every_change_in_a_story_that_was_sealed_again() -> None:
    content = certificate("TSO2")
    for way in leaves(content):
        if way[0] in STORY_PARTS:
            for value in others(at(content, way))[:2]:
                assert refused(sealed(changed(content, way, value))), (way, value)


@pytest.mark.parametrize("name", ["S3", "Tomita4"])
def test_check_refuses_missing_added_and_exchanged_entries(name: str) -> None:
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
        ("S3", {"layers__0__start__0": 1}, "configurations[0] is [0, 0, 0]; the initial configuration is [1, 0, 0]."),
        ("S3", {"layers__0__tables__0__0__0": 3}, "lead to [3, 1, 0], which is not among configurations."),
        ("S3", {"layers__0__tables__0__0__3": 2}, "layers[0].tables[0][0][3] is never used; wanted -1."),
        ("S3", {"layers__0__tables__0__0__0": -1}, "layers[0].tables[0][0][0] is -1, but it is used."),
        ("S3", {"layers__0__tables__0__0__0": 4}, "is 4; wanted an integer from -1 to 3."),
        ("S3", {"layers__0__tables__0__0__0": True}, "is True; wanted an integer from -1 to 3."),
        ("S3", {"readout__2__0": 0}, "'e' at the symbol '(0 1)'; the target, in the state of matching[2], outputs '("),
        ("S3", {"matching__0__1": 1}, "matching[0] is [0, 1, 0]; the initial states are [0, 0, 0]."),
        ("S3", {"matching__3__1": 0}, "which is not among matching."),
        ("S3", {"target__start": 1}, "matching[0] is [0, 0, 0]; the initial states are [0, 1, 0]."),
        ("S3", {"target__tables__0__0": 2}, "matching[0] and the symbol '(0 1)' lead to [1, 2, 0]"),
        ("S3", {"counts__reached": 5}, "counts.reached is 5; there are 6."),
        ("S3", {"counts__joint_indices": 6}, "counts.joint_indices is 6; there are 12."),
        ("S3", {"proved": ["float32", "bfloat16", "float16"]}, "by margins and errors it is ['float32', 'float16']"),
        ("S3", {"margins__logits__0__0__0__0": 3.0}, "proved is ['float32', 'float16']; by margins and errors it is "),
        ("S3", {"margins__logits__0__0__0__0": None}, "is None; wanted a decimal number that is not negative."),
        ("S3", {"margins__logits__0__0__0__3": 4.0}, "is 4.0; wanted null, because nothing is chosen there."),
        ("S3", {"rounding__float32__labels__1": 2.0}, "proved is ['float32', 'float16']"),
        ("S3", {"rounding__float32__labels__1": -1.0}, "is -1.0; wanted a decimal number"),
        ("S3", {"replies": [[]] * 6}, "replies are given, but there is no question."),
        ("S3", {"weights": "0" * 63}, "weights is not a SHA-256 in 64 hexadecimal digits."),
        ("S3", {"evaluated": "bfloat16"}, "evaluated is 'bfloat16'; wanted 'float64' or 'float32'."),
        ("S3", {"symbols__1": "(0 1)"}, "symbols holds '(0 1)' twice."),
        ("S3", {"symbols__1": 5}, "symbols[1] is 5; wanted a string."),
        ("S3", {"reach": 2}, "layers[0].windows[0] is a list of 1; wanted a list of 2."),
        ("S3", {"reach": 1 << 40}, "reach is 1099511627776; wanted an integer from 1 to 1023."),
        ("S3", {"layers": []}, "layers is empty."),
        ("S3", {"layers__0__windows": []}, "layers[0].windows is empty."),
        ("S3", {"layers__0__inputs": [[1], [0]]}, "layers[0].inputs are not the 2 symbols in order."),
        ("S3", {"layers__0__heads": []}, "layers[0].heads is empty."),
        ("S3", {"layers": {}}, "layers is an object; wanted a list."),
        ("S3", {"target": []}, "target is a list of 0; wanted an object."),
        ("S3", {"target__says": "letters"}, "target.says is 'letters'; wanted 'states' or 'outputs'."),
        ("S3", {"configurations": []}, "configurations is empty."),
        ("S3", {"matching": []}, "matching is empty."),
        ("S3", {"rounding": []}, "rounding is a list of 0; wanted an object."),
        ("Tomita4", {"target__readout__0__0": 0}, "readout[0]: 'accept' at the symbol '0'; the target, in"),
        ("TSO2", {"grammar__start": 3}, "the initial configuration is"),
        ("TSO2", {"grammar__refused": [0] * 18}, "grammar.refused is a list of 18; wanted a list of"),
        ("TSO2", {"question__start": 1}, "matching[0] is [0, 0, 0]; the initial states are [0, 0, 1]."),
        ("regions", {"regions": None}, "regions is None; wanted an object."),
        ("regions", {"regions__norm": "l1"}, "regions.norm is 'l1'; wanted 'linf' or 'l2'."),
        ("regions", {"regions__norm": ["linf"]}, "regions.norm is a list of 1; wanted 'linf' or 'l2'."),
        ("regions", {"regions__centers": [[0.5, 1.0]]}, "regions.centers is a list of 1; wanted a list of 2."),
        ("regions", {"regions__centers__1": [0.5]}, "regions.centers[1] is a list of 1; wanted a list of 2."),
        ("regions", {"regions__centers": [[], []]}, "has 2 prototypes of 0 coordinates; wanted at most 1,024"),
        ("regions", {"regions__centers__0__1": 1}, "centers[0][1] is 1; wanted a finite decimal number."),
        ("regions", {"regions__centers__0__1": True}, "centers[0][1] is True; wanted a finite decimal number."),
        ("regions", {"regions__radii__1": -0.5}, "radii[1] is -0.5; wanted a finite decimal number, not negative."),
        ("regions", {"regions__radii__1": "0.5"}, "radii[1] is '0.5'; wanted a finite decimal number, not negative."),
        ("regions", {"regions__radii": [0.1]}, "regions.radii is a list of 1; wanted a list of 2."),
        ("regions", {"regions__radii__1": 2.5}, "the regions of '0' and '1' overlap: an input could be read as either"),
        ("regions", {"regions__radii__1": 1e308}, "the regions of '0' and '1' overlap"),
        ("regions", {"regions__norm": "l2", "regions__radii__1": 3.0}, "the regions of '0' and '1' overlap"),
    ],
)  # fmt: skip
def test_check_gives_the_reason(name: str, changes: dict[str, Any], reason: str) -> None:
    assert reason in recipe(name, **changes)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "Infinity"])
def test_check_refuses_prototypes_that_are_not_finite(number: str) -> None:
    """Whoever seals it: 1e400 is JSON, and infinite once it is read."""
    content = certificate("regions")
    data = json.dumps(content).replace("-1.0]", f"{number}]").encode()
    assert number.encode() in data
    if "e" in number:
        (reason,) = refused({**(found := read_bytes(data)), "sha256": sha256_of(found)})
        assert "regions.centers[0][1] is" in reason
        assert "wanted a finite decimal number" in reason
    else:
        with pytest.raises(Unreadable, match=f"{number} is not a JSON number"):
            read_bytes(data)


def sha256_of(content: dict[str, Any]) -> str:
    """The seal that the checker wants, of anything."""
    bare = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(bare, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def test_check_limits_the_size_of_regions() -> None:
    """Before anything of that size is computed."""
    content = certificate("regions")
    wide = [[0.0] * (1 << 19 | 1)] * 2
    with pytest.raises(Refused, match="2 prototypes of 524,289 coordinates; wanted at most 1,024 prototypes and"):
        check_regions(content["regions"] | {"centers": wide}, content["symbols"])
    many = [f"s{i}" for i in range(1025)]
    with pytest.raises(Refused, match="1,025 prototypes of 1 coordinates"):
        check_regions({"norm": "l2", "centers": [[0.0]] * 1025, "radii": [0.0] * 1025}, many)


def test_distances_neither_overflow_nor_vanish() -> None:
    points = np.array([[3e200, 4e200], [3e-200, 4e-200], [0.0, 0.0], [3.0, -4.0]])
    assert np.allclose(distances(points, np.zeros(2), "l2"), [5e200, 5e-200, 0.0, 5.0], rtol=1e-15, atol=0)
    assert distances(points, np.zeros(2), "linf").tolist() == [4e200, 4e-200, 0.0, 4.0]


def test_regions_are_stated_in_words() -> None:
    content = certificate("regions")
    wanted = "correct on every sequence of any length whose inputs"
    assert region_sentences(content) == [
        f"{wanted} differ from the prototypes by at most 1.5 to 2.25, by symbol, in every coordinate; "
        "proved in float32, float16"
    ]
    boxes = content["regions"]
    for radii, norm, proved, sentence in (
        ([0.3199, 0.3199], "linf", ["float32"], "by at most 0.319 in every coordinate; proved in float32"),
        ([0.0, 0.0], "linf", ["float32"], "whose inputs are the prototypes; proved in float32"),
        ([2.0, 2.0], "l2", [], "inputs that differ from the prototypes by at most 2 in Euclidean distance: proved in"),
    ):
        (found,) = region_sentences({**content, "proved": proved, "regions": {**boxes, "radii": radii, "norm": norm}})
        assert sentence in found
    assert region_sentences(certificate("Tomita4")) == []  # without regions, as before


@pytest.mark.parametrize("radius", [0.3, np.nextafter(0.3, 0), 0.31999, 1e-9, 12345.6, 1.0, 5e-324])
def test_radii_are_rounded_down(radius: float) -> None:
    shown = float(rounded_down(radius))
    assert 0.99 * radius <= shown <= radius or radius == 5e-324


def test_check_refuses_what_no_word_reaches() -> None:
    content = certificate("S3")
    content["configurations"].append([3, 0])
    content["readout"].append([0, 0])
    assert "layers[0].tables[0][0][3] is -1, but it is used" in refused(sealed(content))[0]
    content = certificate("Tomita4")
    content["matching"].append([0, 1])
    assert "which is not among matching" in refused(sealed(content))[0]


def test_check_refuses_two_labels_at_the_same_input_and_indices() -> None:
    """Sent to one state, words of two lengths would look the same to the network."""
    content = certificate("TSO2")
    finals: dict[tuple[int, ...], Way] = {}
    for c, row in enumerate(content["readout"]):
        if len(row) == 1:
            finals.setdefault(tuple(content["configurations"][c]), ("readout", c, 0))
    assert any(
        "elsewhere at the same input and indices" in refused(sealed(changed(content, way, 11 - at(content, way))))[0]
        for way in finals.values()
    )


def test_check_refuses_deep_nesting() -> None:
    depth: list = []
    for _ in range(100_000):
        depth = [depth]
    assert "lists are nested too deep." in refused(certificate("S3") | {"name": depth})
    while depth:  # taken apart by hand: to forget it all at once would need a deep stack too
        depth = depth.pop()


def test_certify_imports_neither_torch_nor_matplotlib() -> None:
    program = "import sys, exactstate.certify; sys.exit(int('torch' in sys.modules or 'matplotlib' in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_check_of_a_mapping_verifies_format_and_version() -> None:
    content = certificate("S3")
    assert refused(sealed(content | {"format": "exactstate-machine"})) == (
        'wanted a JSON object with "format": "exactstate-certificate"; this is some other JSON.',
    )
    for version in (2, 0, True, 1.0, "1", None):
        (reason,) = refused(sealed(content | {"version": version}))
        assert reason == f"this is version {version!r}; this program reads version 1."
    assert "cannot be written as JSON" in refused(content | {"name": {1, 2}})[0]


def run_alone(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """check.py, copied into an empty folder, in an isolated interpreter."""
    source = Path(sys.modules["exactstate.certify.check"].__file__ or "")
    shutil.copy(source, folder / "check.py")
    return subprocess.run(
        [sys.executable, "-I", str(folder / "check.py"), *arguments], capture_output=True, text=True, cwd=folder
    )


def test_check_runs_alone(tmp_path: Path) -> None:
    Certificate(certificate("TSO2")).write(tmp_path / "good.json")
    done = run_alone(tmp_path, "good.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("good.json: valid\n  TSO2: compared with a target of 12 states")
    text = (tmp_path / "good.json").read_text()
    (tmp_path / "bad.json").write_text(text.replace('"reached": ', '"reached": 1'))
    done = run_alone(tmp_path, "good.json", "bad.json")
    assert (done.returncode, done.stderr) == (1, "")
    assert "bad.json: not valid\n  the content was changed after it was sealed" in done.stdout
    assert "counts.reached is" in done.stdout
    done = run_alone(tmp_path, "good.json", "bad.json", "--json")
    assert done.returncode == 1
    good, bad = json.loads(done.stdout)
    assert (good["valid"], good["proved"], bad["valid"], len(bad["findings"])) == (
        True,
        ["float32", "float16"],
        False,
        2,
    )


def test_check_alone_with_no_certificate_or_a_bad_call(tmp_path: Path) -> None:
    Certificate(certificate("S3")).write(tmp_path / "good.json")
    (tmp_path / "other.json").write_text("{}")
    done = run_alone(tmp_path, "other.json", "good.json", "missing.json")
    assert done.returncode == 2
    assert "good.json: valid" in done.stdout
    assert 'other.json: wanted a JSON object with "format": "exactstate-certificate"' in done.stderr
    assert "missing.json: there is no such file." in done.stderr
    assert run_alone(tmp_path).returncode == 2
    assert run_alone(tmp_path, "--what", "good.json").returncode == 2


def test_check_alone_imports_only_the_standard_library_and_numpy(tmp_path: Path) -> None:
    """Also what it imports in turn: nothing of exactstate is loaded."""
    Certificate(certificate("S3")).write(tmp_path / "good.json")
    program = (
        "import sys, runpy; sys.argv = ['check.py', 'good.json']\n"
        "try: runpy.run_path('check.py', run_name='__main__')\n"
        "except SystemExit as done: assert done.code == 0\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "sys.exit(','.join(loaded & {'exactstate', 'torch', 'typer', 'rich', 'matplotlib'}) or 0)"
    )
    run_alone(tmp_path, "good.json")
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_check_alone_accepts_the_kept_certificates(tmp_path: Path) -> None:
    """Certificates of format version 1 that are kept in results/ stay valid."""
    kept = sorted((Path(__file__).parents[2] / "results" / "certificates").glob("*.json"))
    assert len(kept) == 11
    done = run_alone(tmp_path, "--json", *map(str, kept))
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["valid"] for row in json.loads(done.stdout)] == [True] * 11


def test_exactstate_check_loads_no_automata(tmp_path: Path) -> None:
    Certificate(certificate("S3")).write(tmp_path / "good.json")
    program = (
        "import sys; from exactstate.cli._app import run; code = run(['check', sys.argv[1]])\n"
        "loaded = {'.'.join(m.split('.')[:2]) for m in sys.modules if m.startswith('exactstate.')}\n"
        "heavy = loaded & {f'exactstate.{name}' for name in ('automata', 'runtime', 'tasks', 'extract', 'nn')}\n"
        "sys.exit(code or ','.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "good.json")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("format", ["float8_e4m3", "float128", "int8", ""])
def test_check_rounding_of_an_unknown_format(format: str) -> None:
    content = certificate("S3")
    content["rounding"][format] = content["rounding"].pop("float32")
    content["proved"] = [format if name == "float32" else name for name in content["proved"]]
    assert "rounding is about" in refused(sealed(content))[0]


def test_check_rounding_of_a_bound_below_one_rounding() -> None:
    """Margins are 4: a logit of at least 2 is rounded to float32, which may cost 2 * 2**-24."""
    for bound, found in ((0.0, 1), (1.1e-7, 1), (1.2e-7, 0)):
        content = certificate("S3")
        content["rounding"]["float32"]["labels"][0] = bound
        assert len(findings := refused(sealed(content))) == found
        assert not found or "rounding once may cost 1.19e-07" in findings[0]


class CountedName(str):
    """A name that counts its comparisons."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def test_repeated_compares_in_proportion(tmp_path: Path) -> None:
    """Of 40,000 keys, of which one occurs twice; comparing each with each took half a minute."""
    from exactstate.certify.check import _unique, names

    keys = [CountedName(f"k{i}") for i in range(2_000)]
    again = CountedName("k1999")
    CountedName.compared = 0
    with pytest.raises(ValueError, match="the key 'k1999' occurs twice"):
        _unique([(key, 0) for key in [*keys, again]])
    with pytest.raises(Refused, match="symbols holds 'k1999' twice"):
        names([*keys, again], "symbols")
    assert CountedName.compared < 20_000
    (tmp_path / "c.json").write_text("{" + ",".join(f'"k{i % 40_000}":0' for i in range(40_001)) + "}")
    with pytest.raises(Unreadable, match="the key 'k0' occurs twice"):
        check(tmp_path / "c.json")


def test_check_of_many_repeated_names() -> None:
    content = certificate("S3")
    content["symbols"] = [f"s{i}" for i in range(40_000)] + ["s39999"]
    assert refused(sealed(content)) == ("symbols holds 's39999' twice.",)


def peak_of(content: dict[str, Any]) -> tuple[tuple[str, ...], int]:
    import tracemalloc

    tracemalloc.start()
    findings = check(content).findings
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return findings, peak


def test_check_of_a_head_that_is_said_to_be_huge() -> None:
    """Nothing of the stated size is made before the file is seen to hold as much."""
    content = certificate("S3")
    content["layers"][0]["heads"][0] = (1 << 31) - 1
    findings, peak = peak_of(sealed(content))
    assert "layers[0].tables[0][0] is a list of 4; wanted a list of 2147483647." in findings
    assert peak < 20_000_000


def test_check_of_many_symbols_and_indices() -> None:
    """Symbols times indices could be thousands of times the file; margins for all of them must be there first."""
    A = d = 20_000
    content = certificate("S3")
    content["symbols"] = [f"s{i}" for i in range(A)]
    content["target"]["states"], content["target"]["tables"] = ["0"], [[0]] * A
    content["target"]["start"] = 0
    content["layers"] = [
        {"heads": [d], "start": [0], "inputs": [[i] for i in range(A)], "windows": [[0]], "tables": [[[0] * d]]}
    ]
    content["configurations"], content["readout"], content["matching"] = [[0]], [[0] * A], [[0, 0]]
    findings, peak = peak_of(sealed(content))
    assert "margins.logits[0]" in findings[-1]
    assert peak < 60_000_000


def test_check_of_a_count_with_many_digits() -> None:
    content = certificate("S3")
    layer = content["layers"][0]
    layer["heads"] += [2] * 15_000
    layer["start"] += [0] * 15_000
    layer["tables"] += [[[0, -1], [0, -1]]] * 15_000
    content["configurations"] = [row + [0] * 15_000 for row in content["configurations"]]
    content["margins"]["logits"][0] += [[[4.0, None], [4.0, None]]] * 15_000
    assert refused(sealed(content)) == ("counts.joint_indices is 12; there are an integer of 15,004 bits.",)


def test_check_of_half_a_surrogate_pair(tmp_path: Path) -> None:
    content = certificate("S3")
    content["symbols"][0] = "\ud800"
    Certificate(sealed(content)).write(tmp_path / "c.json")
    done = subprocess.run(
        [sys.executable, "-I", "exactstate/certify/check.py", str(tmp_path / "c.json")], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "half of a surrogate pair" in done.stdout


def test_check_of_a_grammar_that_permits_nothing_is_quick() -> None:
    """Configurations times symbols must not be walked where no symbol is permitted."""

    class Counted(list):  # type: ignore[type-arg]
        read = 0

        def __getitem__(self, i: Any) -> Any:
            Counted.read += 1
            return super().__getitem__(i)

    A = C = 300
    content = certificate("TSO2")
    places = [f"p{i}" for i in range(2)]
    content["symbols"] = [f"s{i}" for i in range(A)]
    content["target"] |= {"states": ["0"], "start": 0, "tables": [[0]] * A}
    content["grammar"] = {"places": places, "start": 0, "tables": [[1, 1]] * A, "refused": Counted([0, 1])}
    content["question"] = content["replies"] = None
    content["reach"] = 1
    content["layers"] = [
        {"heads": [C], "start": [0], "inputs": [[i] for i in range(A)], "windows": [[0]], "tables": [[[-1] * C]]}
    ]
    content["margins"]["logits"] = [[[[None] * C] * A]]
    content["configurations"], content["readout"] = [[i, 0] for i in range(C)], [[]] * C
    content["matching"] = [[0, 0]]
    assert refused(sealed(content)) == ("configurations[1] is never reached.",)
    assert Counted.read < 10 * (A + C)  # not A * C
