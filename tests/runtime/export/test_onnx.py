"""The emitted model, run by onnxruntime, says what the interpreter says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from exactstate.errors import BackendUnavailable
from exactstate.runtime.export import to_onnx
from tests.runtime.export.programs import MACHINES

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")


@pytest.mark.parametrize("name", MACHINES)
def test_to_onnx_agrees_with_the_interpreter(name: str) -> None:
    machine = MACHINES[name]
    session = onnxruntime.InferenceSession(to_onnx(machine))
    rng = np.random.default_rng(0)
    for B, L in ((1, 1), (3, 50), (2, 333)):
        batch = rng.integers(0, machine.n_symbols, (B, L))
        said, states, end = session.run(None, {"symbols": batch, "state": np.full(B, machine.start)})
        assert np.array_equal(said, machine.output_ids(batch))
        assert np.array_equal(states, machine.trajectory(batch))
        assert np.array_equal(end, machine.run(batch))


def test_to_onnx_continues_from_a_state() -> None:
    machine = MACHINES["mealy"]
    session = onnxruntime.InferenceSession(to_onnx(machine))
    word = np.random.default_rng(1).integers(0, machine.n_symbols, (1, 100))
    first, _, end = session.run(None, {"symbols": word[:, :37], "state": np.array([machine.start])})
    then, _, _ = session.run(None, {"symbols": word[:, 37:], "state": end})
    assert np.array_equal(np.concatenate([first, then], axis=1), machine.output_ids(word))


def test_to_onnx_names_are_metadata() -> None:
    machine = MACHINES["ugly names"]
    kept = onnxruntime.InferenceSession(to_onnx(machine)).get_modelmeta().custom_metadata_map
    assert json.loads(kept["symbols"]) == list(machine.symbols)
    assert json.loads(kept["outputs"]) == list(machine.output_names)
    assert kept["start"] == str(machine.start)


def test_to_onnx_refuses_symbols_out_of_range() -> None:
    session = onnxruntime.InferenceSession(to_onnx(MACHINES["moore"]))
    with pytest.raises(Exception, match=r"out of data bounds|indices element"):
        session.run(None, {"symbols": np.array([[2]]), "state": np.array([0])})


def test_to_onnx_without_onnx(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(BackendUnavailable, match=r"onnx is not installed; pip install onnx"):
        MACHINES["moore"].export(tmp_path / "light.onnx")
    assert list(tmp_path.iterdir()) == []
