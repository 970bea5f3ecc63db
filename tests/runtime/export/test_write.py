"""`export` goes by the extension."""

from __future__ import annotations

from pathlib import Path

import pytest

from exactstate.errors import BrokenFile, UnknownName
from exactstate.runtime.export import to_c, to_javascript
from tests.runtime.export.programs import MACHINES


def test_write_by_extension(tmp_path: Path) -> None:
    machine = MACHINES["moore"]
    for name, text in (("m.c", to_c(machine)), ("m.js", to_javascript(machine)), ("m.mjs", to_javascript(machine))):
        machine.export(tmp_path / name)
        assert (tmp_path / name).read_text() == text


def test_write_refuses_other_extensions(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"unknown extension '.py'.* Known: .c, .js, .mjs, .onnx"):
        MACHINES["moore"].export(tmp_path / "m.py")
    with pytest.raises(BrokenFile, match="it cannot be written"):
        MACHINES["moore"].export(tmp_path / "nowhere" / "m.c")
