"""The page on the language model: what it prints and draws is what the example prints and draws."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from exactstate.automata import Mealy, minimize
from exactstate.automata.draw import svg
from tests.docs.conftest import ROOT

PAGE, PICTURE = ROOT / "docs" / "language-model.md", ROOT / "docs" / "images" / "language-model.svg"
SCRIPT = ROOT / "examples" / "certified_language_model.py"


def shown() -> tuple[str, str]:
    """(the command, what it prints) on the page."""
    (block,) = re.findall(r"```console\n\$ (.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    command, _, text = block.partition("\n")
    return command, text


def lines(text: str) -> set[str]:
    """Its lines without their figures: another processor may train another network."""
    return {re.sub(r"\d[\d.,]*(e-\d+)?", "#", line) for line in text.splitlines()}


def drawn(picture: bytes) -> bytes:
    """A picture without the version of the program that wrote it, and without the names of its clipping paths, which
    hash the last bits of their corners: another processor may round these otherwise."""
    bare = re.sub(rb"<metadata>.*?</metadata>", b"", picture, flags=re.DOTALL)
    return re.sub(rb'(#|id=")p[0-9a-f]{10}\b', rb"\1clip", bare)


def test_the_picture_is_the_smallest_machine_of_the_language() -> None:
    example = runpy.run_path(str(SCRIPT))
    target = example["language"]()
    mealy = Mealy(
        symbols=target.symbols, tables=target.tables, states=target.states, start=target.start, outputs=target.outputs,
        readout=target.readout[target.tables],
    )  # fmt: skip
    diagram = example["diagram"](minimize(mealy))
    assert set(diagram.states) == {"empty", "(", "[", "((", "([", "[(", "[[", "refused"}
    assert drawn(svg(diagram)) == drawn(PICTURE.read_bytes())
    assert f"(images/{PICTURE.name})" in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_example_prints_and_draws_what_the_page_shows(tmp_path: Path) -> None:
    command, text = shown()
    assert command == f"python examples/{SCRIPT.name} {PICTURE.name}"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), PICTURE.name], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert lines(done.stdout) == lines(text)
    assert drawn((tmp_path / PICTURE.name).read_bytes()) == drawn(PICTURE.read_bytes())


def test_a_page_that_shows_something_else_is_caught() -> None:
    _, text = shown()
    assert lines(text.replace("0.000366", "0.5")) == lines(text)
    assert lines(text.replace("checks: True", "checks: False")) != lines(text)
    assert drawn(PICTURE.read_bytes().replace(b"refused", b"accepted")) != drawn(PICTURE.read_bytes())
