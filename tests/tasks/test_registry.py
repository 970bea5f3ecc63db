"""Every task by its name, any machine by its path, and a sentence for everything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exactstate import automata
from exactstate.errors import ExactstateError, InvalidConfig, UnknownName
from exactstate.tasks import NAMES, BoundedRuns, IidLetters, task
from exactstate.tasks.access_words import AccessWords

# the paper's table of tasks: letters and states
PAPER = {
    "Z2": (2, 2), "Z16": (16, 16), "S3": (2, 6), "S4": (3, 24), "A5": (3, 60), "M11": (4, 7920), "DFF5": (3, 3),
    "FF": (3, 3), "TSO3": (13, 44), "TSO4": (15, 202), "TSO5": (17, 1132),
}  # fmt: skip


@pytest.mark.parametrize("name", PAPER)
def test_task_has_the_sizes_of_the_paper(name: str) -> None:
    assert name in NAMES
    assert (task(name).machine.n_symbols, task(name).machine.n_states) == PAPER[name]


@pytest.mark.parametrize("name", NAMES)
def test_task_of_every_name_can_be_sampled(name: str) -> None:
    found = task(name)
    assert found.name == name
    assert found.about
    batch = found.sample(3, 64, np.random.default_rng(0))
    assert batch.states.shape == (3, 64)
    assert (found.for_length_sweep().sample(1, 64, np.random.default_rng(0)).answers is not None) == name.startswith(
        "TSO"
    )


def test_task_ignores_case() -> None:
    assert task("s3") is task("s3")
    assert task("s3") == task("S3")
    assert task("tomita4").name == "Tomita4"
    assert task("dff5").name == "DFF5"


def test_task_of_unlisted_family_members() -> None:
    assert task("Z7").machine == automata.cyclic(7)
    assert task("D4").machine.n_states == 8
    assert task("DFF3").sampler == BoundedRuns(3, letter=0, longest=2)
    assert task("TSO2").machine.n_states == 12


def test_task_flip_flops_differ_in_their_samplers() -> None:
    assert task("FF").machine == task("DFF5").machine
    assert task("FF").machine.symbols == ("identity", "reset", "set")
    assert task("FF").sampler == IidLetters((18, 1, 1))
    assert task("FF").for_length_sweep().sampler == IidLetters((198, 1, 1))
    assert task("DFF5").sampler == BoundedRuns(3, letter=0, longest=4)
    assert task("DFF5").for_length_sweep() is task("DFF5")


@pytest.mark.parametrize("name", ["S99", "Z1", "TSO6", "Tomita0", "DFF1", "A1000"])
def test_task_refuses_members_beyond_their_family(name: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"there is no task {name}: this family goes from"):
        task(name)


@pytest.mark.parametrize(("name", "near"), [("M13", "M11"), ("TSO", "TSO3"), ("FFF", "FF"), ("tomita", "Tomita7")])
def test_task_suggests_near_names(name: str, near: str) -> None:
    with pytest.raises(UnknownName, match=rf"unknown task '{name}'\. Did you mean .*'{near}'.*Known: Z2, Z5"):
        task(name)


def test_task_of_an_empty_name() -> None:
    with pytest.raises(UnknownName, match=r"unknown task ''\. Known: Z2"):
        task("")


@pytest.mark.parametrize("ending", [".json", ".dot"])
def test_task_from_a_machine_file(tmp_path: Path, ending: str) -> None:
    machine = automata.tomita(4)
    path = tmp_path / f"mine{ending}"
    automata.write_machine(machine, path)
    for name in (path, str(path)):
        found = task(name)
        assert found.name == "mine"
        assert found.machine == machine
        assert isinstance(found.sampler, AccessWords)
        batch = found.sample(4, 50, np.random.default_rng(0))
        assert np.array_equal(batch.states, machine.trajectory(batch.inputs))


def test_task_from_a_mealy_file(tmp_path: Path) -> None:
    mealy = automata.Mealy(symbols=("a", "b"), tables=[[1, 0], [0, 1]], outputs=("x", "y"), readout=[[0, 1], [1, 1]])
    automata.write_machine(mealy, tmp_path / "mealy.dot")
    assert task(tmp_path / "mealy.dot").machine == mealy


def test_task_from_a_semiautomaton_file_starts_at_its_first_state(tmp_path: Path) -> None:
    plain = automata.Semiautomaton(symbols=("a",), tables=[[1, 0]])
    automata.write_machine(plain, tmp_path / "plain.json")
    assert task(tmp_path / "plain.json").machine == automata.Moore.of(plain)


def test_task_from_a_machine() -> None:
    assert task(automata.tomita(2)).machine == automata.tomita(2)


@pytest.mark.parametrize("name", ["missing.dot", "no/such/folder", "./S3"])
def test_task_from_a_missing_file(name: str) -> None:
    with pytest.raises(ExactstateError, match="there is no such file"):
        task(name)


def test_task_m12_has_a_name_though_it_is_not_listed() -> None:
    assert "M12" not in NAMES
    assert task("m12").machine.n_states == 95040
