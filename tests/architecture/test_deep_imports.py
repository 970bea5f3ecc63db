"""Every module of the package can be the first that a program imports, and `exactstate.ops` registers the operators."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPTIONAL = ("triton", "ray", "aalpy", "onnx")
FIRST = "import {}, torch, exactstate.ops\ntorch.ops.exactstate.nfsm_eval.default"


def modules() -> list[str]:
    paths = sorted((ROOT / "exactstate").rglob("*.py"))
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths)
    return [name for name in names if not name.endswith("__main__")]


def failure(program: str) -> str | None:
    """The error of a program in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("module", ["exactstate.ops.interface", "exactstate.nn.nfsm", "exactstate.extract.network"])
def test_deep_import_is_first(module: str) -> None:
    assert module in modules()
    assert failure(FIRST.format(module)) is None


def test_failure_sees_an_import_that_fails() -> None:
    assert "no_such_module" in str(failure(FIRST.format("exactstate.no_such_module")))


@pytest.mark.slow
@pytest.mark.parametrize("module", modules())
def test_deep_import_of_every_module(module: str) -> None:
    error = failure(FIRST.format(module))
    if error is not None and any(f"No module named '{name}" in error for name in OPTIONAL):
        pytest.skip(f"{module} needs an extra that is not installed")
    assert error is None
