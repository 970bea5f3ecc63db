"""The walltime figure: which rows go into which panel, solid and dotted, and circles around runs in chunks."""

from __future__ import annotations

from pathlib import Path

from paper.figures import walltime
from tests.report.figures.drawn import data, lines, nothing_sticks_out, svg, words


def rows() -> list[dict]:
    made = []
    for model, pace in (("NFSM", 1e-5), ("Mamba-", 3e-5)):
        for form, times in (("scan", 1), ("loop", 10)):
            made += [
                {"model": model, "form": form, "L": L, "d": 16, "seconds": pace * times * L, "peak_bytes": 1000 * L,
                 "chunked": form == "scan" and L == 4096}
                for L in (4096, 64, 256)
            ]  # fmt: skip
        made += [
            {"model": model, "form": "scan", "L": 256, "d": d, "seconds": pace * d, "chunked": False} for d in (2, 4)
        ]
    return made


def test_paint_panels_hold_their_rows_in_order() -> None:
    by_length, by_size, by_memory = walltime.paint(rows()).axes
    assert data(lines(by_length, "NFSM, scan")[0]) == ([64, 256, 4096], [1e-5 * L for L in (64, 256, 4096)])
    assert data(lines(by_length, "NFSM, loop")[0]) == ([64, 256, 4096], [1e-4 * L for L in (64, 256, 4096)])
    assert data(lines(by_size, "Mamba⁻, scan")[0])[0] == [2, 4, 16]
    assert data(lines(by_memory, "NFSM, scan")[0])[1] == [64_000, 256_000, 4_096_000]
    assert not lines(by_size, "NFSM, loop")


def test_paint_loops_are_dotted_and_chunks_circled() -> None:
    figure = walltime.paint(rows())
    by_length = figure.axes[0]
    assert lines(by_length, "NFSM, scan")[0].get_linestyle() == "-"
    assert lines(by_length, "NFSM, loop")[0].get_linestyle() != "-"
    circled = [data(line) for line in lines(by_length, "_chunked") if len(line.get_xdata())]
    assert circled == [([4096], [1e-5 * 4096]), ([4096], [3e-5 * 4096])]
    assert "in chunks" in words(figure)


def test_paint_without_chunks_omits_their_key() -> None:
    assert "in chunks" not in words(walltime.paint([{**row, "chunked": False} for row in rows()]))


def test_paint_titles_name_what_is_fixed() -> None:
    titles = [axes.get_title(loc="left") for axes in walltime.paint(rows()).axes]
    assert titles == ["time, d = 16", "time of the scan, L = 256", "memory of the scan, d = 16"]


def test_paint_is_deterministic(tmp_path: Path) -> None:
    assert svg(walltime.paint(rows()), tmp_path) == svg(walltime.paint(rows()), tmp_path)
    assert nothing_sticks_out(walltime.paint(rows()))
