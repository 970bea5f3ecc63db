"""`import exactstate`: few names, imported on first use; callable packages; the version."""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from importlib import metadata

import pytest

import exactstate
import exactstate.automata
from exactstate.certify import certify as certify_function

NAMES = {"NFSM", "certify", "extract", "learn", "Mealy", "Moore", "Semiautomaton", "read_machine", "task", "train"}


def test_exactstate_exports_these_names() -> None:
    assert set(exactstate.__all__) == NAMES
    assert len(NAMES) < 20


@pytest.mark.parametrize("name", sorted(NAMES))
def test_exactstate_export_is_that_of_its_package(name: str) -> None:
    module, original = exactstate._exports[name]
    value = getattr(exactstate, name)
    assert value is getattr(exactstate, name), "an export is the same object every time"
    assert (
        value is sys.modules[module]
        if module == f"exactstate.{name}"
        else value is getattr(sys.modules[module], original)
    )
    assert name in dir(exactstate)


@pytest.mark.parametrize("name", ["certify", "extract", "train"])
def test_callable_package_has_the_signature_of_its_function(name: str) -> None:
    package = getattr(exactstate, name)
    function = vars(package)[name] if name in vars(package) else getattr(package, name)
    assert inspect.isfunction(function)
    assert inspect.signature(package) == inspect.signature(function)


def test_callable_package_calls_its_function() -> None:
    machine = exactstate.task("S3").machine
    assert exactstate.certify(machine, machine).explain() == certify_function(machine, machine).explain()
    assert importlib.import_module("exactstate.certify.check").__name__ == "exactstate.certify.check"


def test_automata_isomorphism_is_the_function() -> None:
    module = importlib.import_module("exactstate.automata.isomorphism")
    assert isinstance(module, types.ModuleType)
    assert exactstate.automata.isomorphism is module.isomorphism


def test_exactstate_refuses_other_names() -> None:
    with pytest.raises(AttributeError, match="module 'exactstate' has no attribute 'extractt'"):
        exactstate.extractt  # noqa: B018


def test_version_is_that_of_the_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", {"exactstate": "1.2.3"}.__getitem__)
    assert exactstate.__version__ == "1.2.3"


def test_version_without_an_install_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert exactstate.__version__ == "unknown"
