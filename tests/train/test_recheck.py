"""`difference_from_weights`: a certificate is about the weights that give its tables, margins and bounds."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from exactstate.certify.certificate import sealed
from exactstate.certify.check import check, read
from exactstate.errors import BrokenFile
from exactstate.train import load_run, train
from exactstate.train.recheck import difference_from_weights, weights_of
from tests.certify.forgery import forged


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recheck") / "S3"
    assert train("S3", recipe="induce", width=16, out=folder).certified
    return folder


@pytest.fixture
def content(folder: Path) -> dict[str, Any]:
    return read(folder / "certificate.json")


def test_difference_from_weights_of_a_run(folder: Path, content: dict[str, Any]) -> None:
    path = weights_of(folder, content)
    assert path == folder / "model.safetensors"
    assert difference_from_weights(content, path) is None


def test_difference_from_weights_of_a_forgery(folder: Path, content: dict[str, Any]) -> None:
    """Consistent, with the digest of S3's weights: only extracting them again shows that it is not about them."""
    false = forged(content)
    assert check(false)
    assert false["weights"] == content["weights"]
    why = difference_from_weights(false, folder / "model.safetensors")
    assert "the machine of these weights is not certified: after" in str(why)


def test_difference_from_weights_accepts_quick_and_sharp_bounds(
    folder: Path, content: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exactstate.extract.rounding.MANY", 0)
    run = load_run(folder)
    run._saved = None
    quick = run.certificate().content
    stated, sharp = (one["rounding"]["float32"]["labels"] for one in (quick, content))
    assert all(one > other for one, other in zip(stated, sharp, strict=True))
    assert difference_from_weights(quick, folder / "model.safetensors") is None
    assert difference_from_weights(content, folder / "model.safetensors") is None


def larger(content: dict[str, Any], kind: str) -> dict[str, Any]:
    """The same with better numbers: margins that are twice as large, or bounds that are half."""
    other = copy.deepcopy(content)

    def scaled(value: Any, factor: float) -> Any:
        if isinstance(value, list):
            return [scaled(one, factor) for one in value]
        return None if value is None else value * factor

    place, factor = (other["margins"], 2.0) if kind == "margins" else (other["rounding"]["float32"], 0.5)
    place["logits"] = scaled(place["logits"], factor)
    return sealed(other)


@pytest.mark.parametrize("kind", ["margins", "bounds"])
def test_difference_from_weights_of_better_numbers(kind: str, folder: Path, content: dict[str, Any]) -> None:
    false = larger(content, kind)
    assert check(false)
    assert f"its {kind} " in str(difference_from_weights(false, folder / "model.safetensors"))


def test_difference_from_weights_of_other_tables(folder: Path, content: dict[str, Any]) -> None:
    """The same machine with two indices renamed is consistent, but not what the weights compute."""
    other = copy.deepcopy(content)
    layer = other["layers"][0]
    d = layer["heads"][0]
    to = [1, 0, *range(2, d)]
    layer["start"][0] = to[layer["start"][0]]
    layer["tables"][0] = [[-1 if row[to[k]] < 0 else to[row[to[k]]] for k in range(d)] for row in layer["tables"][0]]
    other["configurations"] = [[to[row[0]], *row[1:]] for row in other["configurations"]]
    for bounds in (other["margins"], *other["rounding"].values()):
        bounds["logits"][0][0] = [[row[to[k]] for k in range(d)] for row in bounds["logits"][0][0]]
    other = sealed(other)
    assert check(other)
    assert difference_from_weights(other, folder / "model.safetensors") == "these weights give other layers"


def test_difference_from_weights_of_other_weights(folder: Path, content: dict[str, Any], tmp_path: Path) -> None:
    train("Z2", recipe="induce", width=16, out=tmp_path / "Z2")
    path = weights_of(tmp_path / "Z2", content)
    assert str(difference_from_weights(content, path)).startswith("it names the SHA-256 ")


def test_weights_of_something_else(content: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="not the folder of a run"):
        weights_of(tmp_path, content)
    shutil.copy(folder / "config.json", tmp_path)
    with pytest.raises(BrokenFile, match="no trained weights yet"):
        weights_of(tmp_path, content)
    save_file({"a": torch.zeros(3)}, tmp_path / "other.safetensors")
    from exactstate.certify.weights_file import digest_of_file

    named = {**content, "weights": digest_of_file(tmp_path / "other.safetensors")}
    with pytest.raises(BrokenFile, match="not the weights of an NFSM that exactstate trained"):
        difference_from_weights(named, tmp_path / "other.safetensors")
