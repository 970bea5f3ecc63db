"""Diagrams: scene, painting and files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exactstate.automata import Mealy, Moore, Semiautomaton, alternating, draw, symmetric
from exactstate.automata.draw.save import _slim
from exactstate.automata.draw.scene import Scene, abbreviate, arrows_of, codes, fits, node_labels
from exactstate.errors import BrokenFile, UnknownName

PARITY = Moore(
    symbols=("even", "odd"), tables=[[0, 1], [1, 0]], states=("even", "odd"), outputs=("even", "odd"), readout=[0, 1]
)
TALK = Mealy(
    symbols=("EmptyCertificate", "ChangeCipherSpec", "Finished"),
    tables=[[1, 2, 3, 4, 0], [0, 0, 0, 0, 0], [2, 3, 4, 1, 1]],
    outputs=("Alert Fatal (Unexpected message)", "Empty"),
    readout=[[1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [0, 1, 0, 1, 0]],
)


def random_machine(n: int, A: int) -> Semiautomaton:
    return Semiautomaton(
        symbols=tuple(f"x{a}" for a in range(A)), tables=np.random.default_rng(n).integers(0, n, (A, n))
    )


def test_arrows_of_merges_parallel_and_inverse_arrows() -> None:
    arrows = arrows_of(PARITY)
    assert [(a.source, a.target, a.label, a.both_ways) for a in arrows] == [
        (0, 0, "even", False), (0, 1, "odd", True), (1, 1, "even", False),
    ]  # fmt: skip
    (arrow,) = arrows_of(Semiautomaton(symbols=("a", "b"), tables=[[0], [0]]))
    assert (arrow.symbols, arrow.label) == ((0, 1), "a, b")


def test_arrows_of_mealy_inputs_share_an_output() -> None:
    machine = Mealy(symbols=("a", "b", "c"), tables=[[0]] * 3, outputs=("0", "1"), readout=[[0], [1], [0]])
    assert arrows_of(machine)[0].label == "a, c / 0, b / 1"
    assert arrows_of(machine, coded=True)[0].label == "A,C/1; B/2"
    assert codes(machine) == ["A = a", "B = b", "C = c", "1 = 0", "2 = 1"]


def test_abbreviate_long_and_unprintable_names() -> None:
    assert abbreviate("abcdefghijklmnop", 8) == "abcde…op"
    assert abbreviate("a\nb") == "a�b"
    twins = Semiautomaton(symbols=("a",), tables=[[0, 1]], states=("x" * 20 + "1" + "y" * 9, "x" * 20 + "2" + "y" * 9))
    assert node_labels(twins, 8) == [("0", ""), ("1", "")]


def test_scene_codes_long_labels_with_a_key() -> None:
    scene = Scene(TALK)
    assert scene.labeled
    assert scene.key[0] == "A = EmptyCertificate"
    assert {arrow.label for arrow in scene.arrows} >= {"A/2", "B/1"}
    assert Scene(PARITY).key == []


def test_scene_labels_few_arrows_and_colors_many() -> None:
    assert Scene(symmetric(3)).labeled
    assert not Scene(symmetric(3)).has_color_key
    assert not Scene(symmetric(4)).labeled
    assert Scene(symmetric(4)).has_color_key


def test_scene_sentences_say_what_is_left_out() -> None:
    machine = random_machine(60, 9)
    assert Scene(machine).sentences == [
        "Arrows are drawn without their symbol: there are 9.",
        f"Self-loops are not shown: {sum(arrow.is_loop for arrow in arrows_of(machine))} states have one.",
    ]
    assert Scene(alternating(5)).sentences == ["States are numbered."]
    star = Semiautomaton(symbols=("in", "on"), tables=[[0] * 40, [0, *range(2, 40), 1]])
    assert Scene(star).hubs == [0]
    assert "Arrows into shaded states are not shown: 0 (39)." in Scene(star).sentences


@pytest.mark.parametrize(("machine", "suffix"), [(PARITY, "png"), (TALK, "pdf"), (symmetric(3), "svg")])
def test_draw_is_deterministic(tmp_path: Path, machine: Semiautomaton, suffix: str) -> None:
    signature = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[suffix]
    contents = []
    for name in ("one", "two"):
        draw(machine, tmp_path / f"{name}.{suffix}", title="a $title_ % {")
        contents.append((tmp_path / f"{name}.{suffix}").read_bytes())
    assert contents[0].startswith(signature)
    assert contents[0] == contents[1]
    assert sorted(os.listdir(tmp_path)) == [f"one.{suffix}", f"two.{suffix}"]


def test_draw_is_not_blank(tmp_path: Path) -> None:
    from matplotlib.image import imread

    draw(PARITY, tmp_path / "parity.png")
    pixels = imread(tmp_path / "parity.png")[..., :3]
    assert 0.02 < (pixels < 0.9).any(-1).mean() < 0.5
    assert (pixels[0] == 1).all()
    assert (pixels[-1] == 1).all()


def test_draw_ugly_names(tmp_path: Path) -> None:
    names = ("$x$", "_y", "\n", "\U0001f41f", "\\frac{", "")  # mathematics, hidden, a break, no glyph, a command
    machine = Moore(
        symbols=names, tables=np.random.default_rng(0).integers(0, 6, (6, 6)), states=names, outputs=names,
        readout=np.arange(6)[::-1],
    )  # fmt: skip
    assert draw(machine, tmp_path / "ugly.png") == []
    draw(Semiautomaton(symbols=names[:2], tables=random_machine(36, 2).tables), tmp_path / "key.png")
    draw(Semiautomaton(symbols=names, tables=random_machine(300, 6).tables), tmp_path / "tables.png", title="$")


def test_draw_thousands_of_states_as_tables(tmp_path: Path) -> None:
    machine = random_machine(1132, 17)
    assert not fits(machine)
    sentences = draw(machine, tmp_path / "large.png")
    assert sentences[0].startswith("1132 states and their arrows are too many to draw")
    assert sentences[1] == "The first 12 of 17 symbols are shown."
    assert draw(random_machine(100_000, 2), tmp_path / "larger.png")


def test_draw_many_symbols(tmp_path: Path) -> None:
    assert not fits(random_machine(50, 400))
    assert not fits(random_machine(3, 100_000))
    assert draw(random_machine(50, 400), tmp_path / "many.png")


def test_draw_onto_axes(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4))
    axes = figure.subplots(1, 3)
    for place, machine in zip(axes, (PARITY, symmetric(4), random_machine(500, 3)), strict=True):
        draw(machine, place, title="$")
    assert len(axes[0].patches) > 4
    assert len(axes[2].child_axes) == 3
    figure.savefig(tmp_path / "three.png")


def test_draw_refuses_other_formats_and_missing_folders(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"unknown picture format '.pgn'. Did you mean '.png'"):
        draw(PARITY, tmp_path / "parity.pgn")
    with pytest.raises(BrokenFile, match="there is no folder"):
        draw(PARITY, tmp_path / "nowhere" / "parity.png")
    assert os.listdir(tmp_path) == []


def test_draw_imports_matplotlib_on_use_and_pyplot_never(tmp_path: Path) -> None:
    program = (
        "import sys; from exactstate.automata import draw, cyclic\n"
        "assert 'matplotlib' not in sys.modules and 'networkx' not in sys.modules\n"
        f"draw(cyclic(3), {str(tmp_path / 'c3.svg')!r})\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[3])


def test_slim_rounds_paths_only() -> None:
    slim = _slim(
        b'<path d="M 1.23456 2 \nL -0.5 10.999\nz\n" style="stroke-width: 0.123456" transform="scale(0.015625)"/>'
    )
    assert slim == b'<path d="M 1.23 2 L -0.5 10.99 z " style="stroke-width: 0.123456" transform="scale(0.015625)"/>'
    moved = b'<use x="7.0009" transform="translate(3.14159 -2.71828) scale(0.055 -0.055)"/>'
    assert _slim(moved) == b'<use x="7.00" transform="translate(3.14 -2.71) scale(0.055 -0.055)"/>'
