"""Drift: formats against an integer rounding of their own, failing steps against a plain loop, fp64 against mpmath."""

from __future__ import annotations

from math import atan2, floor, pi, tau
from typing import Any

import mpmath
import pytest

from detent.errors import InvalidConfig, UnknownName
from paper.theory.drift import CHUNK, FORMATS, Rounded, drift_rows, iterate, nearest

SIGNIFICANT = {"fp64": 53, "fp32": 24, "bf16": 8, "fp16": 11, "fp8 e4m3": 4, "fp8 e5m2": 3}
COARSE = ["bf16", "fp16", "fp8 e4m3", "fp8 e5m2"]


def summaries(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["format"]: row for row in rows if row["kind"] == "summary"}


@pytest.mark.parametrize("format", FORMATS)
def test_entries_are_rounded_to_the_nearest_number(format: str) -> None:
    rotation = Rounded.to(format)
    with mpmath.workdps(60):
        for told, exact in (
            (rotation.cosine, mpmath.cos(2 * mpmath.pi / 7)),
            (rotation.sine, mpmath.sin(2 * mpmath.pi / 7)),
        ):
            grid = 2 ** SIGNIFICANT[format]  # both lie in [1/2, 1)
            assert told * grid == int(mpmath.nint(exact * grid))


def test_formats_differ_from_each_other() -> None:
    """The rounding above barks: a bf16 entry is not on the grid of fp8."""
    assert Rounded.to("bf16").sine * 2 ** SIGNIFICANT["fp8 e5m2"] % 1 != 0


@pytest.mark.parametrize("order", [3, 7, 11])
@pytest.mark.parametrize("format", COARSE)
def test_the_failing_step_is_that_of_a_plain_loop(format: str, order: int) -> None:
    """Decoded by the largest inner product with a corner."""
    rotation = Rounded.to(format, order)
    c, s = rotation.cosine, rotation.sine
    x, y, t = 1.0, 0.0, 0
    while True:
        t += 1
        x, y = c * x - s * y, s * x + c * y
        told = round(atan2(y, x) / tau * order) % order
        if told != t % order:
            break
    (row,) = (row for row in drift_rows([format], order=order) if row["kind"] == "summary")
    assert (row["first_wrong_step"], row["by"]) == (t, "iteration")
    assert rotation.first_wrong_step == t


def test_every_format_fails_and_finer_ones_later() -> None:
    told = [Rounded.to(format).first_wrong_step for format in ("fp8 e5m2", "fp8 e4m3", "bf16", "fp16", "fp32", "fp64")]
    assert told == sorted(told)
    assert told[:5] == [21, 26, 291, 4797, 27271560]
    assert told[5] > 10**15


def test_the_length_at_which_fp64_fails_by_other_means() -> None:
    rotation = Rounded.to("fp64")
    with mpmath.workdps(60):
        turned = mpmath.atan2(mpmath.mpf(rotation.sine), mpmath.mpf(rotation.cosine)) - 2 * mpmath.pi / 7
        assert rotation.angle_error == pytest.approx(float(turned), rel=1e-15)
        wanted = int(mpmath.floor(mpmath.pi / 7 / abs(turned))) + 1
        radius = mpmath.log(mpmath.hypot(mpmath.mpf(rotation.sine), mpmath.mpf(rotation.cosine)))
        assert rotation.log_radius == pytest.approx(float(radius), rel=1e-15)
    assert rotation.first_wrong_step == pytest.approx(wanted, rel=1e-14)


def test_rows_of_a_format_are_the_closed_form_up_to_rounding() -> None:
    rows = drift_rows(["fp16"])
    rotation = Rounded.to("fp16")
    steps = [row for row in rows if row["kind"] == "step"]
    assert steps[0]["step"] == 1
    assert steps[-1]["step"] == 4 * rotation.first_wrong_step
    for row in steps:
        assert row["by"] == "iteration"
        assert row["phase_error"] == pytest.approx(row["step"] * rotation.angle_error, abs=1e-11)
        assert row["log_norm"] == pytest.approx(row["step"] * rotation.log_radius, abs=1e-11)
    first = next(row["step"] for row in steps if row["wrong"])
    before = max(row["step"] for row in steps if row["step"] < first)
    assert before < rotation.first_wrong_step <= first


def test_iteration_goes_on_across_chunks() -> None:
    last = 2 * CHUNK + 5
    _, (row,) = iterate(Rounded.to("fp32"), last, [last])
    assert row["phase_error"] == pytest.approx(last * Rounded.to("fp32").angle_error, rel=1e-6)


def test_beyond_the_limit_the_closed_form_speaks() -> None:
    rows = drift_rows(["fp16"], limit=1000)
    assert summaries(rows)["fp16"]["by"] == "closed form"
    assert {row["by"] for row in rows if row["kind"] == "step" and row["step"] > 1000} == {"closed form"}
    assert {row["by"] for row in rows if row["kind"] == "step" and row["step"] <= 1000} == {"iteration"}


def test_a_rotation_that_a_format_holds_never_fails() -> None:
    with pytest.raises(InvalidConfig, match="fp16 holds the angle 2 pi / 4 exactly: this rotation never fails"):
        drift_rows(["fp16"], order=4)


def test_refusals() -> None:
    with pytest.raises(UnknownName, match="unknown number format 'fp12'"):
        nearest(0.5, "fp12")
    with pytest.raises(InvalidConfig, match="at least 3 corners; got 2"):
        Rounded.to("fp16", 2)


def test_half_the_angle_between_corners_is_where_it_fails() -> None:
    rotation = Rounded.to("bf16")
    assert floor(pi / 7 / abs(rotation.angle_error)) + 1 == 291
    assert 290 * abs(rotation.angle_error) < pi / 7 < 291 * abs(rotation.angle_error)
