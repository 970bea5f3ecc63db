"""The campaign of protocol machines: rows of a folder of DOT files, within a budget of CPU time."""

from __future__ import annotations

from pathlib import Path

import pytest

from exactstate.automata import write_machine
from exactstate.errors import InvalidConfig
from paper.experiments.protocols import PROTOCOLS, protocol_row
from paper.tables import protocols_table
from tests.learning.machines import handshake, sessions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for owner, name, machine in (("one", "handshake", handshake()), ("two", "sessions", sessions())):
        (tmp_path / f"{owner}+repo").mkdir()
        write_machine(machine, tmp_path / f"{owner}+repo" / f"{name}.dot")
    return tmp_path


def test_protocols_has_a_job_for_every_machine_and_supervision(folder: Path) -> None:
    jobs = list(PROTOCOLS.jobs(PROTOCOLS.options(settings=[f"folder={folder}"])))
    keys = {(job.key["name"], job.key["supervision"]) for job in jobs}
    assert keys == {(name, kind) for name in ("handshake", "sessions") for kind in ("states", "outputs")}


def test_protocols_refuses_a_folder_without_machines(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="has no machines; wanted DOT files in folders named after"):
        list(PROTOCOLS.jobs(PROTOCOLS.options(settings=[f"folder={tmp_path}"])))


def test_protocol_row_of_a_certified_run_and_of_one_out_of_time(folder: Path) -> None:
    file = folder / "one+repo" / "handshake.dot"
    right = protocol_row(file, "states", "induce", 42, 60.0)
    assert (right["certified"], right["source"], right["states"], right["inputs"]) == (True, "one/repo", 6, 5)
    late = protocol_row(file, "outputs", "gradient", 42, 0.0)
    assert (late["tables"], "tables" in right) == ("one large head", False)
    assert (late["certified"], late["verdict"]) == (False, "not certified after 0 CPU seconds")
    table = protocols_table([right, late]).rows[0]
    assert table[:5] == ("handshake", "one/repo", "6", "5", "3")
    assert table[5].startswith("yes, ")
    assert table[6].startswith("no, ")
