"""The front door has few names, opens rooms on request, and says so when there is no such name."""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from importlib import metadata

import pytest

import detent
import detent.automata
from detent.certify import certify as certify_function

NAMES = {"NFSM", "certify", "extract", "Mealy", "Moore", "Semiautomaton", "read_machine", "task", "train"}


def test_these_are_the_names() -> None:
    assert set(detent.__all__) == NAMES
    assert len(NAMES) < 20


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_is_the_one_of_its_package(name: str) -> None:
    module, original = detent._exports[name]
    value = getattr(detent, name)
    assert value is getattr(detent, name), "the same thing however often it is asked for"
    assert (
        value is sys.modules[module] if module == f"detent.{name}" else value is getattr(sys.modules[module], original)
    )
    assert name in dir(detent)


@pytest.mark.parametrize("name", ["certify", "extract", "train"])
def test_a_package_with_the_name_of_its_function_is_called_as_the_function(name: str) -> None:
    package = getattr(detent, name)
    function = vars(package)[name] if name in vars(package) else getattr(package, name)
    assert inspect.isfunction(function)
    assert inspect.signature(package) == inspect.signature(function)


def test_calling_the_package_calls_the_function() -> None:
    machine = detent.task("S3").machine
    assert detent.certify(machine, machine).explain() == certify_function(machine, machine).explain()
    assert importlib.import_module("detent.certify.check").__name__ == "detent.certify.check"


def test_an_export_wins_over_the_submodule_of_its_name() -> None:
    module = importlib.import_module("detent.automata.isomorphism")
    assert isinstance(module, types.ModuleType)
    assert detent.automata.isomorphism is module.isomorphism


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
