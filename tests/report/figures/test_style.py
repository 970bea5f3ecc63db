"""Colors differ in lightness and marker too, for color-blind readers; the style stays inside the figures."""

from __future__ import annotations

from itertools import combinations

import matplotlib
import numpy as np
import pytest

from exactstate.baselines.cells import CELLS
from exactstate.errors import InvalidInput
from exactstate.report.figures import style

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB
BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB of linear RGB, white D65."""
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(matrix) @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def least_lightness_step(colours: list[str]) -> float:
    return min(abs(lab(linear(a))[0] - lab(linear(b))[0]) for a, b in combinations(colours, 2))


PAPER = [CELLS[name].color for name in ("nfsm", "mamba", "aussm", "pdssm")]


def test_models_differ_in_grayscale() -> None:
    assert least_lightness_step(PAPER) > 12


def test_grayscale_measure_detects_equal_colors() -> None:
    assert least_lightness_step(["#FF0000", "#0080C0"]) < 12


@pytest.mark.parametrize("kind", BLIND)
@pytest.mark.parametrize("colours", [PAPER, list(style.STATES[:5])], ids=["models", "states"])
def test_models_and_states_differ_for_color_blind_readers(kind: str, colours: list[str]) -> None:
    seen = [lab(np.array(BLIND[kind]) @ linear(colour)) for colour in colours]
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)) > 15


def test_shades_go_from_dark_to_light() -> None:
    lightness = [lab(linear(colour))[0] for colour in style.SHADES]
    assert np.all(np.diff(lightness) > 6)


def test_models_differ_in_marker_and_line() -> None:
    assert len({cell.marker for cell in CELLS.values()}) == len(CELLS)
    assert len({str(cell.line) for cell in CELLS.values()}) == len(CELLS)


@pytest.mark.parametrize(("name", "key"), [("NFSM", "nfsm"), ("Mamba-", "mamba"), ("PD-SSM", "pdssm")])
def test_model_key_of_names_in_rows(name: str, key: str) -> None:
    assert style.model_style(name)[0] == CELLS[key].title


def test_model_style_of_an_unknown_model_keeps_its_name_and_comes_last() -> None:
    assert style.model_style("GRU")[0] == "GRU"
    assert style.in_order(["GRU", "pdssm", "NFSM", "GRU"]) == ["NFSM", "pdssm", "GRU"]


def test_styled_restores_the_settings() -> None:
    before = dict(matplotlib.rcParams)
    inside = style.styled(lambda: matplotlib.rcParams["font.size"])()
    assert inside == 8.0
    assert dict(matplotlib.rcParams) == before


def test_of_kind_rejects_rows_of_another_kind() -> None:
    with pytest.raises(InvalidInput, match="rows of kind 'step'; among 1 rows there are none"):
        style.of_kind([{"kind": "summary"}], "step")


def test_of_kind_rejects_a_row_without_an_entry() -> None:
    with pytest.raises(InvalidInput, match="a row of kind 'step' has no 'gap' and no 'seed'"):
        style.of_kind([{"kind": "step", "model": "NFSM"}], "step", "model", "gap", "seed")
