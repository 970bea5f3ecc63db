"""`import exactstate`: few names, imported on first use; callable packages; the version."""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys
import types
from importlib import metadata

import cloudpickle
import pytest

import exactstate
import exactstate.automata
from exactstate.certify import certify as certify_function

NAMES = {"NFSM", "certify", "extract", "learn", "Mealy", "Moore", "Semiautomaton", "read_machine", "task", "train"}


def test_exactstate_exports_these_names() -> None:
    assert set(exactstate.__all__) == NAMES
    assert len(NAMES) < 20


@pytest.mark.parametrize("name", sorted(NAMES))
def test_exactstate_export_is_the_same_object_every_time(name: str) -> None:
    assert getattr(exactstate, name) is getattr(exactstate, name)
    assert name in dir(exactstate)


@pytest.mark.parametrize("name", ["nn", "ops", "runtime", "learning"])
def test_exactstate_package_is_there_at_once(name: str) -> None:
    program = f"import exactstate, sys; assert 'torch' not in sys.modules; print(exactstate.{name}.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == f"exactstate.{name}\n", done.stderr


def test_a_function_that_names_the_package_is_pickled() -> None:
    assert pickle.loads(cloudpickle.dumps(lambda: exactstate.NFSM(8)))().out_proj.out_features == 8


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
