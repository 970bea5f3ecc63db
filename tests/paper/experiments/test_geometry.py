"""`follow`: the read-out is the prediction of the whole model, and the plane has the largest variances."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate.baselines import AUSSM, PDSSM, MambaMinus
from exactstate.nn import NFSM, Backbone
from paper.experiments.geometry import GRID, SHOWN, WINDOWS, follow

LENGTH = WINDOWS[-1] + SHOWN - 1
BLOCKS = {
    "nfsm": lambda g: NFSM(8, (5, 2), generator=g),
    "mamba": lambda g: MambaMinus(8, 4, 2, generator=g),
    "aussm": lambda g: AUSSM(8, 4, 2, generator=g),
    "pdssm": lambda g: PDSSM(8, 4, 2, generator=g),
}


@pytest.fixture(scope="module", params=BLOCKS)
def followed(request: pytest.FixtureRequest) -> tuple[Backbone, list[dict]]:
    g = torch.Generator().manual_seed(7)
    blocks = [BLOCKS[request.param](g) for _ in range(2)]
    model = Backbone(5, 5, blocks, width=8, dropout=0.0, generator=g).eval()
    wanted = np.arange(1, LENGTH + 1) % 5
    return model, follow(model, request.param, 1, wanted)


def test_follow_reads_the_predictions_of_the_model(followed: tuple[Backbone, list[dict]]) -> None:
    model, (run, *windows) = followed
    with torch.no_grad():
        said = model(torch.ones(1, LENGTH, dtype=torch.long))[0][0].argmax(-1).numpy()
    for window in windows:
        here = slice(window["first"] - 1, window["first"] - 1 + SHOWN)
        assert np.array_equal(window["read"], said[here])
    wrong = np.flatnonzero(said != np.arange(1, LENGTH + 1) % 5)
    assert run["first_wrong"] == wrong[0] + 1


def test_follow_returns_the_windows(followed: tuple[Backbone, list[dict]]) -> None:
    _, (_, *windows) = followed
    assert [window["first"] for window in windows] == list(WINDOWS)
    for window in windows:
        assert window["states"][:3] == [window["first"] % 5, (window["first"] + 1) % 5, (window["first"] + 2) % 5]
        assert len(window["regions"]) == GRID
        assert {len(line) for line in window["regions"]} == {GRID}
        assert set("".join(window["regions"])) <= set("01234")
        points = np.array(window["points"])
        assert (points >= window["low"]).all()
        assert (points <= window["high"]).all()


def test_follow_projects_on_the_largest_variances() -> None:
    """Against the covariance matrix of the states, computed by streaming the layer alone."""
    g = torch.Generator().manual_seed(3)
    model = Backbone(5, 5, [MambaMinus(8, 4, 2, generator=g)], width=8, dropout=0.0, generator=g).eval()
    run, first, *_ = follow(model, "mamba", 1, np.zeros(LENGTH, int))
    layer = model.layers[0]
    with torch.no_grad():
        u, state, states = layer.block_input(model.encode(torch.tensor([[1]])))[0][0], None, []
        for _ in range(LENGTH):
            _, state = layer.block.step(u, state)
            states.append(state.flatten().double().numpy())
    centred = np.array(states) - np.mean(states, axis=0)
    variances = np.linalg.eigvalsh(centred.T @ centred)[::-1]
    assert run["explained"] == pytest.approx((variances[:2] / variances.sum()).tolist(), abs=1e-3)
    distances = np.linalg.norm(np.diff(np.array(first["points"]), axis=0), axis=1)
    assert (distances <= np.linalg.norm(np.diff(centred[:SHOWN], axis=0), axis=1) + 1e-3).all()


def test_follow_of_an_nfsm_visits_the_same_few_points_forever() -> None:
    g = torch.Generator().manual_seed(1)
    model = Backbone(5, 5, [NFSM(8, (5,), generator=g)], width=8, dropout=0.0, generator=g).eval()
    _, first, middle, last = follow(model, "nfsm", 1, np.zeros(LENGTH, int))
    late = {tuple(point) for point in last["points"]}
    assert {tuple(point) for point in middle["points"]} == late
    assert len(late) <= 5
    assert late <= {tuple(point) for point in first["points"]}
