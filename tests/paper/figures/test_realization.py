"""The realization figure: code points on the run, balls where the rows say, several tokens once the state is lost."""

from __future__ import annotations

from pathlib import Path

from detent.automata import cyclic
from paper.figures.cells import cell_rows
from paper.figures.realization import SPILT, paint
from tests.paper.figures.drawn import nothing_sticks_out, svg, words

MACHINE = cyclic(3)
WORD = [1, 1, 1, 2]


def painted(eta: float = 0.2):
    figure = paint(MACHINE, cell_rows(MACHINE, WORD, eta), "Z3")
    strip, above, said, below, read = figure.axes[:5]
    return figure, strip, above, said, below, read


def dots(axes) -> list[list[float]]:
    (found,) = [line for line in axes.get_lines() if line.get_marker() == "o"]
    return [list(found.get_xdata()), list(found.get_ydata())]


def bars(axes) -> list[tuple[float, float, float]]:
    from matplotlib.collections import LineCollection

    found = [one.get_segments()[0] for one in axes.collections if isinstance(one, LineCollection)]
    return sorted((round(float(s[0, 0]), 2), round(float(s[0, 1]), 3), round(float(s[1, 1]), 3)) for s in found)


def test_code_points_lie_on_the_run() -> None:
    _, _, above, _, below, _ = painted()
    assert dots(above) == dots(below) == [[0, 1, 2, 3, 4], [0, 1, 2, 0, 2]]


def test_balls_stay_small_above_and_grow_below() -> None:
    _, _, above, _, below, _ = painted()
    assert bars(above)[:2] == [(0.55, 0.8, 1.2), (1.55, 1.8, 2.2)]
    assert bars(below)[:2] == [(0.55, 0.8, 1.2), (1.55, 1.6, 2.4)]


def test_what_is_no_longer_unique_is_orange_and_told() -> None:
    from matplotlib.colors import to_hex

    _, _, _, said, below, read = painted()
    colours = [to_hex(one.get_facecolor()[0]) for one in below.collections if len(one.get_facecolor())]
    assert SPILT.lower() in colours
    assert len(said.texts) == 5
    assert len(read.texts) > 5


def test_a_smaller_eta_keeps_everything_grey() -> None:
    from matplotlib.colors import to_hex

    _, _, _, _, below, read = painted(eta=0.05)
    colours = {to_hex(one.get_facecolor()[0]) for one in below.collections if len(one.get_facecolor())}
    assert SPILT.lower() not in colours
    assert len(read.texts) == 5


def test_symbols_stand_between_the_states() -> None:
    figure, strip, *_ = painted()
    told = [text for text in strip.texts if getattr(text, "xy", (0, 0))[0] % 1 == 0.5 and text.get_text()]
    assert [text.get_text() for text in told] == ["1", "1", "1", "2"]
    assert "Z3" in words(figure)


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    assert svg(painted()[0], tmp_path) == svg(painted()[0], tmp_path)
    assert nothing_sticks_out(painted()[0])
