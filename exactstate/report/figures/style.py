"""The style of all figures: sizes for print, fonts, colors that remain distinct in grayscale.

Models and states differ in lightness as well as in hue, and in line or marker besides, for grayscale printers and
color-blind readers; `tests/report/figures/test_style.py` measures it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from exactstate.baselines.cells import CELLS
from exactstate.errors import InvalidInput
from exactstate.records import Row

COLUMN, PAGE = 3.4, 7.0
"""Inches: the width of a column, and of a page."""
INK, GREY, PALE, ALARM = "#222222", "#6B6B6B", "#D5D5D5", "#C1121F"

STATES = ("#1F2A6B", "#E9C46A", "#C2410C", "#5FB7A8", "#7B4B94", "#A3B18A", "#4A4A4A", "#E4A6B7")
STATE_MARKERS = "osD^vPX*"
SHADES = ("#00224E", "#35456C", "#666970", "#948E77", "#C8B866", "#E8CF3F")
"""From dark to light, for ordered values."""

RC: Any = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 8.0, "axes.titlesize": 8.5,
    "axes.labelsize": 8.0, "xtick.labelsize": 7.0, "ytick.labelsize": 7.0, "legend.fontsize": 7.0,
    "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#E6E6E6", "grid.linewidth": 0.5, "axes.axisbelow": True, "lines.linewidth": 1.3,
    "lines.markersize": 4.0, "legend.frameon": False, "axes.prop_cycle": "cycler('color', ['222222'])",
    "axes.unicode_minus": True, "mathtext.fontset": "dejavusans", "figure.dpi": 100.0,
}  # fmt: skip

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def styled(paint: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Paint with these settings of matplotlib, and restore its own afterwards."""

    @wraps(paint)
    def inside(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        from matplotlib import rc_context

        with rc_context(RC):
            return paint(*args, **kwargs)

    return inside


def sheet(width: float, height: float) -> Any:
    """An empty figure of this size in inches, without a window, with constrained layout."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def model_key(name: str) -> str:
    """`nfsm` for NFSM, `mamba` for Mamba-, `pdssm` for PD-SSM."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def model_style(name: str) -> tuple[str, str, str, Any]:
    """(title, color, marker, line) of a cell; grey for an unknown one."""
    cell = CELLS.get(model_key(name))
    return (name, GREY, "x", "-") if cell is None else (cell.title, cell.color, cell.marker, cell.line)


def in_order(names: Iterable[str]) -> list[str]:
    """Each name once, in the order of CELLS, unknown ones last."""
    known = list(CELLS)
    return sorted(
        dict.fromkeys(names), key=lambda name: known.index(model_key(name)) if model_key(name) in known else len(known)
    )


def of_kind(rows: Sequence[Row], kind: str, *entries: str) -> list[Row]:
    """The rows of this kind; an error when there is none or when one lacks an entry."""
    selected = [row for row in rows if row.get("kind", kind) == kind]
    if not selected:
        raise InvalidInput(f"this figure is drawn from rows of kind {kind!r}; among {len(rows)} rows there are none.")
    for row in selected:
        missing = [name for name in entries if name not in row]
        if missing:
            raise InvalidInput(f"a row of kind {kind!r} has no {' and no '.join(map(repr, missing))}: {row!r:.200}")
    return selected
