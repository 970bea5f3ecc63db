"""How far the states of a trained run can be told apart along a word, and where that predicts its failure.

The predictor is that of `paper.theory.error_control`, applied to what the linear read-out of the backbone reads. The
code and the readable spread are measured on the second half of the words of training; the ratio of spread to
separation is followed along longer words, window by window. The failure is predicted in the first window in which the
ratio exceeds what is readable, and measured in the first in which fewer than `ACCURACY` of the labels are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from exactstate.evaluate.accuracy import BASELINE_THRESHOLD, first_errors
from exactstate.nn import Backbone
from exactstate.records import Row
from exactstate.tasks import Task
from exactstate.train.run import load_run
from exactstate.train.run_dir import RunDir
from paper.theory.error_control import Code, Labels
from paper.theory.shapes import Floats

ACCURACY = 0.9
"""The share of right labels below which a model has failed; for whole words it is that of the baselines' sweeps."""
WINDOW = 16
"""Steps whose vectors are measured together."""
PIECE = 64
"""Steps that are run at once."""
SHOWN = (64, 128, 256, 512, 1024, 2048)
"""Lengths whose ratio is in the row."""


@torch.inference_mode()
def vectors_of(model: Backbone, words: NDArray[Any]) -> Floats:
    """B L m: what the linear read-out reads after every symbol."""
    state, pieces = None, []
    for piece in torch.from_numpy(words.astype(np.int64)).split(PIECE, dim=1):
        h, state = model.hidden(piece, state)
        pieces.append(model.decode(h).double())
    return torch.cat(pieces, dim=1).numpy()


def error_control_row(folder: Path, words: int, max_length: int) -> Row:
    """The predicted and the measured failure of a finished run, and the ratio at growing lengths."""
    run = load_run(folder, extract=False)
    config = run.config
    return {
        "folder": folder.name, "words": words, "max_length": max_length, "task": run.task.name, "cell": config.cell,
        "recipe": config.recipe, "seed": config.seed, "certified": RunDir(folder).certificate_path.exists(),
        "window": WINDOW, "accuracy": ACCURACY,
        **measure(run.model.eval(), run.task, config.end_to_end.length, words, max_length),
    }  # fmt: skip


def measure(model: Backbone, task: Task, trained_length: int, words: int, max_length: int) -> Row:
    """The same of a model that was trained on words of a length."""
    batch = task.for_length_sweep().sample(words, max_length, np.random.default_rng(0))
    states, symbols = batch.states.astype(np.int64), batch.inputs.astype(np.int64)
    vectors = vectors_of(model, batch.inputs)
    weight, bias = (part.detach().double().numpy() for part in (model.readout.weight, model.readout.bias))

    def decoder(vectors: Floats) -> Labels:
        return np.asarray((vectors @ weight.T + bias).argmax(-1))

    def window(first: int, last: int) -> tuple[Floats, Labels, Labels]:
        part = slice(first, last)
        return (
            vectors[:, part].reshape(-1, vectors.shape[-1]), states[:, part].reshape(-1), symbols[:, part].reshape(-1),
        )  # fmt: skip

    known = window(trained_length // 2, trained_length)
    code = Code.of(*known)
    readable = code.readable_spread(*known, decoder, ACCURACY, np.random.default_rng(0))
    read = decoder(vectors)
    right = read == states
    ratios = {
        first + WINDOW: code.spread(*window(first, first + WINDOW)) / Code.of(*window(first, first + WINDOW)).separation
        for first in range(trained_length // 2, max_length - WINDOW + 1, WINDOW)
    }
    shares = {last: float(right[:, last - WINDOW : last].mean()) for last in ratios}
    threshold = None if readable is None else readable / code.separation
    fails = int(np.sort(first_errors(read, states))[BASELINE_THRESHOLD.failing_errors(words) - 1]) + 1
    return {
        "separation": round(code.separation, 4), "threshold": None if threshold is None else round(threshold, 4),
        "predicted": None if threshold is None else _first(last for last, q in ratios.items() if q > threshold),
        "measured": _first(last for last, share in shares.items() if share < ACCURACY),
        "failing_length": fails if fails <= max_length else None,
        "ratios": {str(last): round(q, 5) for last, q in ratios.items() if last in SHOWN},
        "shares": {str(last): round(share, 4) for last, share in shares.items() if last in SHOWN},
    }  # fmt: skip


def _first(lengths: Iterator[int]) -> int | None:
    return next(lengths, None)
