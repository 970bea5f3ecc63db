"""CHANGELOG.md: every public name of 0.1 has a name in 0.2, and every file of its tables exists."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
PUBLIC = {
    "automata": """
        alternating aperiodic canonical cascade compose congruence cyclic Definite definite dihedral
        direct_product draw factor Factoring Facts flip_flop from_maps from_permutations from_tables group
        is_congruence isomorphism join mathieu11 Mealy meet minimize modular_arithmetic Moore parallel
        permutation permutation_reset principal_congruences quaternion quotient read_machine Semiautomaton
        separating_word symmetric synchronising to_dot tomita transition_monoid write_machine
    """,
    "certification": "Bounds Certificate certify check Extraction Failure Question Report Subject Verdict",
    "evaluation": "Bar first_errors question_accuracy Reader sequence_accuracy Sweep sweep_questions sweep_words",
    "extraction": "Budget Column digest extract Extracted LayerRead rounding_errors RoundingErrors",
    "figures": "Drawing FIGURES",
    "layers": "AUSSM BMRU CausalConvolution CMRU GatedMLP MambaMinus NFSM PDSSM",
    "models": "Backbone State",
    "recipes": "ARMS Plan Run train",
    "report": "page_of write_report",
    "runtime": "Heads Joint load Machine save Stream",
    "scan": "adjoint available compose identity prefix resolve run",
    "tasks": """
        Batch definite_words describe Description Law Letters NAMES OutputsOnly permitted Question ShortRuns
        Stories Task task tracking_objects
    """,
    "theory": """
        Affine branch contracting_horizon eta_0 first_meeting from_factoring held_ellipsoid held_sets
        isometric_horizon one_hot perturbed realizes refute shift_register shortest_attack stacked Triple
        two_rates
    """,
    "training": "Anchor Anchored Anchoring Codes find_codes observe Settings Tracking",
}
"""What the packages of 0.1 exported."""
MOVED = {
    "automata": "detent.automata", "certification": "detent.certify", "evaluation": "detent.evaluate",
    "extraction": "detent.extract", "figures": "paper.figures", "layers": "detent.nn", "models": "detent.nn",
    "recipes": "detent.train", "report": "detent.report", "runtime": "detent.runtime", "scan": "detent.ops",
    "tasks": "detent.tasks", "theory": "paper.theory", "training": "detent.train",
}  # fmt: skip


def table(title: str) -> list[tuple[str, str]]:
    """(old, new) of the table below a heading of the section on 0.2.0."""
    text = CHANGELOG.partition(f"#### {title}\n")[2].partition("\n#")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(old, new) for old, new in rows[2:]]


RENAMED = {old.strip("`"): new.strip("`") for old, new in table("Public names")}


def resolve(path: str) -> object:
    """The object with this dotted name."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            value: object = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            value = getattr(value, part)
        return value
    raise AssertionError(path)


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_of_0_1_has_a_name_in_0_2(package: str) -> None:
    for name in PUBLIC[package].split():
        old = f"detent.{package}.{name}"
        assert resolve(RENAMED.get(old, f"{MOVED[package]}.{name}")) is not None, old


def test_the_table_of_public_names_lists_names_of_0_1() -> None:
    known = {f"detent.{package}.{name}" for package, names in PUBLIC.items() for name in names.split()}
    assert set(RENAMED) <= known


def test_every_file_of_the_table_exists() -> None:
    rows = table("Files")
    assert len(rows) > 100
    for _, new in rows:
        for path in re.findall(r"`([^`]+)`", new):
            assert (ROOT / path).exists(), path
