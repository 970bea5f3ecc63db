"""Sessions of an agent with a shop: a refund only after `verify`, unless it is an attack."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from exactstate.learning.calls import Call, CallTrace

BROWSE = ("browse", "search", "open", "close_tab")


def session(draw: np.random.Generator, *, attack: bool, most: int = 6) -> list[str]:
    def browse() -> list[str]:
        return [BROWSE[i] for i in draw.integers(0, len(BROWSE), draw.integers(0, most))]

    verified = not attack and bool(draw.integers(0, 2))
    names = ["login", *browse(), *(["verify", *browse()] if verified else [])]
    if attack or (verified and draw.random() < 0.7):
        names += ["refund", *browse()]
    return [*names, "logout"]


def sessions(count: int, *, attacks: float = 0.1, seed: int = 1, labels: bool = True) -> list[CallTrace]:
    draw = np.random.default_rng(seed)
    traces = []
    for line in range(1, count + 1):
        attack = bool(draw.random() < attacks)
        calls = [Call(name) for name in session(draw, attack=attack)]
        traces.append(CallTrace(calls, ("attack" if attack else "ok") if labels else None, line))
    return traces


def write(path: Path, traces: list[CallTrace]) -> None:
    rows = ({"calls": [call.name for call in t.calls], **({"label": t.label} if t.label else {})} for t in traces)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
