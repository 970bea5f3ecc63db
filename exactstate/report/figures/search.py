"""Figure of a report: the heads that the recipe `gradient` kept, layer by layer, and what they leave open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from exactstate.records import Row
from exactstate.report.figures.style import COLUMN, GREY, PAGE, PALE, STATES, sheet, styled

MAX_HEADS = 6
"""Of a layer that are drawn."""


@dataclass(frozen=True)
class Reading:
    """What a reading of the heads found."""

    step: int
    """Of all layers together."""
    layer: int
    new: tuple[int, ...]
    """Sizes of the heads that were kept at this step."""
    open: float | None
    """Nats of the state that all kept heads leave open."""


def readings(history: Sequence[Row]) -> list[Reading]:
    """Those of the last attempt that learned in this way."""
    rows = [row for row in history if _is_search(row) and isinstance(row.get("kept"), list)]
    found, before, done = list[Reading](), dict[int, int](), 0
    for row in rows:
        if row.get("attempt") == rows[-1].get("attempt"):
            layer, kept = int(row.get("layer", 0)), row["kept"]
            done = found[-1].step if found and layer > found[-1].layer else done
            new = tuple(kept[before.get(layer, 0) :])
            found.append(Reading(done + int(row["step"]), layer, new, row.get("open")))
            before[layer] = len(kept)
    return found


def _is_search(row: Row) -> bool:
    """Whether the row is of a search, which has a phase for every layer: `search`, `search-2`, ..."""
    return str(row.get("phase")).split("-")[0] == "search"


@styled
def paint(read: Sequence[Reading]) -> Any:
    """The cascade, its lowest layer at the bottom, beside the open nats over the steps where there are two readings."""
    layers = [[(size, one.step) for one in read if one.layer == layer for size in one.new]
              for layer in range(1 + max(one.layer for one in read))]  # fmt: skip
    points = [(one.step, one.open) for one in read if one.open is not None]
    if len(points) < 2:
        figure = sheet(COLUMN, 0.4 + 0.85 * len(layers))
        _paint_cascade(figure.subplots(), layers)
        return figure
    figure = sheet(PAGE, max(2.0, 0.4 + 0.85 * len(layers)))
    cascade, open_nats = figure.subplots(1, 2)
    _paint_cascade(cascade, layers)
    open_nats.step(*zip(*points, strict=True), where="post", color=STATES[0], marker="o", markersize=2.4, clip_on=False)
    open_nats.set(xlabel="steps", xlim=(0, None), ylim=(0, None))
    open_nats.set_title("Nats of the state left open", loc="left")
    return figure


def _paint_cascade(axes: Any, layers: Sequence[Sequence[tuple[int, int]]]) -> None:
    from matplotlib.patches import FancyBboxPatch

    def box(x: float, y: float, width: float, height: float, face: str, edge: str) -> None:
        corners = "round,pad=0,rounding_size=0.06"
        axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=corners, facecolor=face, edgecolor=edge))

    most = max(3, *(min(len(layer), MAX_HEADS) for layer in layers))
    width = 1.1 + most
    for number, layer in enumerate(layers):
        y = 1.5 * number
        box(0, y, width, 1, "#F5F5F5", PALE)
        axes.text(0.1, y + 0.5, f"layer {number}", va="center", color=GREY)
        for place, (size, step) in enumerate(layer[:MAX_HEADS]):
            x = 1.1 + place
            box(x, y + 0.12, 0.88, 0.76, "white", STATES[0])
            axes.text(x + 0.44, y + 0.62, str(size), ha="center", va="center", fontsize=10, fontweight="bold")
            axes.text(x + 0.44, y + 0.3, f"step {step}", ha="center", va="center", fontsize=6, color=GREY)
        reads = "symbols" if number == 0 else "symbols, indices below"
        axes.annotate("", (0.4, y), (0.4, y - 0.45), arrowprops={"arrowstyle": "->", "color": GREY})
        axes.text(0.55, y - 0.25, reads, va="center", fontsize=7, color=GREY)
    axes.set(xlim=(-0.05, width + 0.05), ylim=(-0.5, 1.5 * len(layers) - 0.4))
    axes.set_axis_off()
    more = sum(max(0, len(layer) - MAX_HEADS) for layer in layers)
    axes.set_title("Heads that are kept, by their indices" + (f"; {more} more" if more else ""), loc="left")
