"""Figure `realization`: every perturbed run lies in the rows' intervals, and the drawing shows what the rows hold."""

from __future__ import annotations

from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactstate.automata import Moore, cyclic, flip_flop, symmetric, tomita
from exactstate.errors import InvalidConfig, InvalidMachine
from paper.figures.realization import AMBIGUOUS, cell_rows, exploring_word, paint
from tests.report.figures.drawn import nothing_sticks_out, svg, words

MACHINE = cyclic(3)
WORD = [1, 1, 1, 2]


def of_kind(rows: list[dict], kind: str) -> list[dict]:
    return [row for row in rows if row["kind"] == kind]


@pytest.mark.parametrize("machine", [cyclic(5), symmetric(3), flip_flop(), tomita(4)], ids=["Z5", "S3", "FF", "T4"])
def test_cell_rows_contain_every_perturbed_run(machine: Moore) -> None:
    """An independent simulation: a point moved with its cell, with random errors of at most eta, ten steps."""
    eta, word = 0.13, exploring_word(machine, 10)
    rows = cell_rows(machine, word, eta)
    random = np.random.default_rng(3)
    for _ in range(300):
        u = float(machine.start)
        for step, symbol in enumerate(word, start=1):
            cell = min(max(floor(u + 0.5), 0), machine.n_states - 1)
            u += int(machine.tables[symbol][cell]) - cell + random.choice([-eta, eta, random.uniform(-eta, eta)])
            pieces = [row for row in of_kind(rows, "accumulated") if row["step"] == step]
            assert any(row["low"] - 1e-9 <= u <= row["high"] + 1e-9 for row in pieces)
            read = next(row for row in of_kind(rows, "read") if row["step"] == step)["states"]
            assert min(max(floor(u + 0.5), 0), machine.n_states - 1) in read


def test_cell_rows_read_one_state_until_half_a_cell_is_filled() -> None:
    rows = cell_rows(cyclic(5), [1] * 8, eta=0.11)
    known = [len(row["states"]) for row in of_kind(rows, "read")]
    assert known[:5] == [1] * 5  # 4 * 0.11 < 1/2
    assert known[5] > 1  # 5 * 0.11 > 1/2


def test_cell_rows_follow_the_run_of_the_automaton() -> None:
    machine = symmetric(3)
    word = exploring_word(machine, 7)
    states = [row["state"] for row in of_kind(cell_rows(machine, word), "run")]
    assert states == [machine.start, *machine.trajectory(np.array(word)).tolist()]


def test_exploring_word_visits_all_states() -> None:
    machine = symmetric(3)
    assert set(machine.trajectory(np.array(exploring_word(machine, 11))).tolist()) == set(range(6))


def test_cell_rows_refuse_large_machines() -> None:
    with pytest.raises(InvalidMachine, match="at most 12 states; this machine has 24"):
        cell_rows(symmetric(4), [0])


@pytest.mark.parametrize("eta", [0.0, 0.5, -1.0])
def test_cell_rows_refuse_eta_beyond_half_a_cell(eta: float) -> None:
    with pytest.raises(InvalidConfig, match="between 0 and 1/2"):
        cell_rows(cyclic(3), [1], eta)


def painted(eta: float = 0.2) -> tuple[Any, ...]:
    figure = paint(MACHINE, cell_rows(MACHINE, WORD, eta), "Z3")
    strip, above, read_above, below, read_below = figure.axes[:5]
    return figure, strip, above, read_above, below, read_below


def dots(axes: Any) -> list[list[float]]:
    (found,) = [line for line in axes.get_lines() if line.get_marker() == "o"]
    return [list(found.get_xdata()), list(found.get_ydata())]


def bars(axes: Any) -> list[tuple[float, float, float]]:
    from matplotlib.collections import LineCollection

    found = [one.get_segments()[0] for one in axes.collections if isinstance(one, LineCollection)]
    return sorted((round(float(s[0, 0]), 2), round(float(s[0, 1]), 3), round(float(s[1, 1]), 3)) for s in found)


def test_paint_puts_code_points_on_the_run() -> None:
    _, _, above, _, below, _ = painted()
    assert dots(above) == dots(below) == [[0, 1, 2, 3, 4], [0, 1, 2, 0, 2]]


def test_paint_intervals_grow_only_without_restoration() -> None:
    _, _, above, _, below, _ = painted()
    assert bars(above)[:2] == [(0.55, 0.8, 1.2), (1.55, 1.8, 2.2)]
    assert bars(below)[:2] == [(0.55, 0.8, 1.2), (1.55, 1.6, 2.4)]


def test_paint_marks_an_ambiguous_readout() -> None:
    from matplotlib.colors import to_hex

    _, _, _, read_above, below, read_below = painted()
    colors = [to_hex(one.get_facecolor()[0]) for one in below.collections if len(one.get_facecolor())]
    assert AMBIGUOUS.lower() in colors
    assert len(read_above.texts) == 5
    assert len(read_below.texts) > 5


def test_paint_of_a_small_eta_marks_nothing() -> None:
    from matplotlib.colors import to_hex

    _, _, _, _, below, read_below = painted(eta=0.05)
    colors = {to_hex(one.get_facecolor()[0]) for one in below.collections if len(one.get_facecolor())}
    assert AMBIGUOUS.lower() not in colors
    assert len(read_below.texts) == 5


def test_paint_writes_symbols_between_states() -> None:
    figure, strip, *_ = painted()
    told = [text for text in strip.texts if getattr(text, "xy", (0, 0))[0] % 1 == 0.5 and text.get_text()]
    assert [text.get_text() for text in told] == ["1", "1", "1", "2"]
    assert "Z3" in words(figure)


def test_paint_is_deterministic(tmp_path: Path) -> None:
    assert svg(painted()[0], tmp_path) == svg(painted()[0], tmp_path)
    assert nothing_sticks_out(painted()[0])
