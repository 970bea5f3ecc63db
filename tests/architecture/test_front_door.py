"""The front door has few names, opens rooms on request, and says so when there is no such name."""

from __future__ import annotations

from importlib import import_module, metadata

import pytest

import detent

NAMES = {"NFSM", "certify", "extract", "Mealy", "Moore", "Semiautomaton", "read_machine", "task", "train"}


def test_these_are_the_names() -> None:
    assert set(detent.__all__) == NAMES
    assert len(NAMES) < 20


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_is_the_one_of_its_room(name: str) -> None:
    room = import_module(f"detent.{detent._ROOM[name]}")
    assert getattr(detent, name) is getattr(room, name)
    assert name in dir(detent)


def test_no_name_is_a_room() -> None:
    assert not NAMES & {"errors", "records", "native", "automata", "scan", "tasks", "layers", "cli"}


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'detent' has no attribute 'extractt'"):
        detent.extractt  # noqa: B018


def test_the_version_is_the_installed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", {"detent": "1.2.3"}.__getitem__)
    assert detent.__version__ == "1.2.3"


def test_without_an_install_there_is_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert detent.__version__ == "unknown"
