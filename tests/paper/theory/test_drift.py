"""Drift: formats against an integer rounding, failing steps against a plain loop, pi and fp64 against mpmath."""

from __future__ import annotations

from decimal import Decimal
from math import atan2, floor, pi, tau
from typing import Any

import mpmath
import pytest

from exactstate.errors import InvalidConfig, UnknownName
from paper.theory.drift import (
    CHUNK,
    FORMATS,
    RoundedRotation,
    circle_point,
    compute_pi,
    drift_rows,
    iterate,
    round_to_format,
)

SIGNIFICANT = {"fp64": 53, "fp32": 24, "bf16": 8, "fp16": 11, "fp8 e4m3": 4, "fp8 e5m2": 3}
COARSE = ["bf16", "fp16", "fp8 e4m3", "fp8 e5m2"]


def summaries(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["format"]: row for row in rows if row["kind"] == "summary"}


@pytest.mark.parametrize("format", FORMATS)
def test_round_to_format_gives_the_nearest_number(format: str) -> None:
    rotation = RoundedRotation.to(format)
    with mpmath.workdps(60):
        for told, exact in (
            (rotation.cosine, mpmath.cos(2 * mpmath.pi / 7)),
            (rotation.sine, mpmath.sin(2 * mpmath.pi / 7)),
        ):
            grid = 2 ** SIGNIFICANT[format]  # both lie in [1/2, 1)
            assert told * grid == int(mpmath.nint(exact * grid))


def test_rounded_rotation_differs_between_formats() -> None:
    """The rounding above barks: a bf16 entry is not on the grid of fp8."""
    assert RoundedRotation.to("bf16").sine * 2 ** SIGNIFICANT["fp8 e5m2"] % 1 != 0


@pytest.mark.parametrize("order", [3, 7, 11])
@pytest.mark.parametrize("format", COARSE)
def test_first_wrong_step_is_that_of_a_plain_loop(format: str, order: int) -> None:
    """Decoded by the largest inner product with a corner."""
    rotation = RoundedRotation.to(format, order)
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


def test_first_wrong_step_grows_with_precision() -> None:
    told = [
        RoundedRotation.to(format).first_wrong_step
        for format in ("fp8 e5m2", "fp8 e4m3", "bf16", "fp16", "fp32", "fp64")
    ]
    assert told == sorted(told)
    assert told[:5] == [21, 26, 291, 4797, 27271560]
    assert told[5] > 10**15


def test_first_wrong_step_of_fp64_against_mpmath() -> None:
    rotation = RoundedRotation.to("fp64")
    with mpmath.workdps(60):
        turned = mpmath.atan2(mpmath.mpf(rotation.sine), mpmath.mpf(rotation.cosine)) - 2 * mpmath.pi / 7
        assert rotation.angle_error == pytest.approx(float(turned), rel=1e-15)
        wanted = int(mpmath.floor(mpmath.pi / 7 / abs(turned))) + 1
        radius = mpmath.log(mpmath.hypot(mpmath.mpf(rotation.sine), mpmath.mpf(rotation.cosine)))
        assert rotation.log_radius == pytest.approx(float(radius), rel=1e-15)
    assert rotation.first_wrong_step == pytest.approx(wanted, rel=1e-14)


def test_drift_rows_agree_with_the_closed_form() -> None:
    rows = drift_rows(["fp16"])
    rotation = RoundedRotation.to("fp16")
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


def test_iterate_continues_across_chunks() -> None:
    last = 2 * CHUNK + 5
    _, (row,) = iterate(RoundedRotation.to("fp32"), last, [last])
    assert row["phase_error"] == pytest.approx(last * RoundedRotation.to("fp32").angle_error, rel=1e-6)


def test_drift_rows_beyond_the_limit_are_in_closed_form() -> None:
    rows = drift_rows(["fp16"], limit=1000)
    assert summaries(rows)["fp16"]["by"] == "closed form"
    assert {row["by"] for row in rows if row["kind"] == "step" and row["step"] > 1000} == {"closed form"}
    assert {row["by"] for row in rows if row["kind"] == "step" and row["step"] <= 1000} == {"iteration"}


def test_first_wrong_step_of_an_exact_rotation_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="fp16 represents the angle 2 pi / 4 exactly: this rotation never fails"):
        drift_rows(["fp16"], order=4)


def test_rounded_rotation_refuses_bad_input() -> None:
    with pytest.raises(UnknownName, match="unknown number format 'fp12'"):
        round_to_format(0.5, "fp12")
    with pytest.raises(InvalidConfig, match="at least 3 corners; got 2"):
        RoundedRotation.to("fp16", 2)


def test_first_wrong_step_is_at_half_the_angle_between_corners() -> None:
    rotation = RoundedRotation.to("bf16")
    assert floor(pi / 7 / abs(rotation.angle_error)) + 1 == 291
    assert 290 * abs(rotation.angle_error) < pi / 7 < 291 * abs(rotation.angle_error)


def test_compute_pi_to_a_hundred_digits() -> None:
    with mpmath.workdps(120):
        assert abs(Decimal(mpmath.nstr(mpmath.pi, 110)) - compute_pi(100)) < Decimal(10) ** -100


@pytest.mark.parametrize(("turns", "order"), [(1, 7), (3, 5), (6, 7), (11, 7), (1, 360)])
def test_circle_point_against_mpmath(turns: int, order: int) -> None:
    with mpmath.workdps(90):
        angle = 2 * mpmath.pi * turns / order
        for told, wanted in zip(circle_point(turns, order, 60), (mpmath.cos(angle), mpmath.sin(angle)), strict=True):
            assert abs(told - Decimal(mpmath.nstr(wanted, 80))) <= Decimal(10) ** -60


def test_circle_point_is_exact_where_it_can_be() -> None:
    assert circle_point(1, 4) == (0, 1)
    assert circle_point(2, 4) == (-1, 0)
    assert circle_point(0, 3) == (1, 0)
