"""Build models: one function for the NFSM and for every other cell; save and load their weights.

    model = build_model(config, task, heads=((3, 2),), generator=torch.Generator().manual_seed(42))

A task that asks a question gets a convolution of two symbols before every block, and a second read-out for answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import nn

from exactstate import baselines
from exactstate.baselines.cells import CELLS
from exactstate.errors import BrokenFile, InvalidConfig
from exactstate.nn import NFSM, Backbone
from exactstate.records import write_atomically
from exactstate.tasks import Task
from exactstate.train.config import TrainConfig

Heads = Sequence[Sequence[int]]
"""A number for every head of every layer."""


def build_model(
    config: TrainConfig, task: Task, *, heads: Heads | None = None, initial_states: Heads | None = None,
    value_widths: Sequence[int] | None = None, generator: torch.Generator | None = None,
) -> Backbone:  # fmt: skip
    """A backbone with the cell of the configuration in every layer.

    - `heads`: indices of every head of every layer of an NFSM; those of the task or of the configuration by default.
    - `initial_states`: the index of each of them before the first symbol; zeros by default.
    - `value_widths`: of every layer; a pruned layer has that of the wide one.
    """
    if config.cell == "nfsm":
        heads = heads or task.layers or (None if config.heads is None else (config.heads,))
        if heads is None:
            raise InvalidConfig("an NFSM is built of heads; give their sizes, such as heads=((3, 2),).")
        initial_states = initial_states or [(0,) * len(sizes) for sizes in heads]
        options: dict[str, Any] = {
            "temperature": config.temperature, "remember": 0.0, "dictionary": None,
            "noise": config.recipe not in ("gradient", "straight_through"), "generator": generator,
        }  # fmt: skip
        parts = zip(heads, initial_states, value_widths or (None,) * len(heads), strict=True)
        blocks: list[nn.Module] = [
            NFSM(config.width, sizes, initial_state=state, value_width=width, **options)
            for sizes, state, width in parts
        ]
    else:
        blocks = [build_baseline(config, generator) for _ in range(config.layers)]
    return Backbone(
        task.machine.n_symbols, len(task.labels), blocks, width=config.width, dropout=config.dropout,
        kernel_size=2 if task.question is not None or len(heads or ()) > 1 else 1, generator=generator,
        answers=0 if task.question is None else task.question.n_answers,
    )  # fmt: skip


def build_baseline(config: TrainConfig, generator: torch.Generator | None = None) -> nn.Module:
    """One recurrent block of a baseline."""
    cell = CELLS[config.cell]
    sizes = (getattr(config, field) for field in cell.sizes)
    layer: nn.Module = getattr(baselines, cell.layer)(*sizes, generator=generator)
    return layer


def save_model(path: Path, model: Backbone, metadata: Mapping[str, str]) -> None:
    """Write the weights, with the sizes and initial states of the heads of every NFSM layer."""
    weights = {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}
    blocks = [layer.block for layer in model.layers if isinstance(layer.block, NFSM)]
    layout = {
        "heads": " ".join(",".join(map(str, block.heads)) for block in blocks),
        "initial_states": " ".join(",".join(map(str, block.config.initial_state)) for block in blocks),
        "value_widths": " ".join(str(block.value_width) for block in blocks),
    }
    write_atomically(path, to_bytes(weights, {**(layout if blocks else {}), **metadata}))


def load_backbone(path: Path) -> Backbone:
    """The NFSM model in evaluation mode that `save_model` wrote, its sizes read from the file alone."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
        weights = load_file(path)
        if "heads" not in metadata:
            raise KeyError("it does not say what heads it has")
        blocks: list[nn.Module] = []
        width = weights["embedding.weight"].shape[1]
        for depth, (sizes, state) in enumerate(
            zip(_sizes(metadata["heads"]), _sizes(metadata["initial_states"]), strict=True)
        ):
            mix = weights.get(f"layers.{depth}.block.mix_proj.weight")
            blocks.append(
                NFSM(
                    width,
                    sizes,
                    initial_state=state,
                    value_width=weights[f"layers.{depth}.block.values"].shape[1],
                    dictionary=None if mix is None else len(mix),
                )
            )
        conv, answers = weights.get("layers.0.conv.weight"), weights.get("answer_head.weight")
        model = Backbone(
            len(weights["embedding.weight"]), len(weights["readout.weight"]), blocks, width=width,
            hidden=len(weights["encoder.up.weight"]), kernel_size=1 if conv is None else conv.shape[1],
            answers=0 if answers is None else len(answers),
        )  # fmt: skip
        model.to(weights["embedding.weight"].dtype).load_state_dict(weights)
    except (SafetensorError, OSError, RuntimeError, KeyError, ValueError, IndexError) as error:
        raise BrokenFile(
            path, f"these are not the weights of an NFSM that exactstate trained ({_reason(error)})"
        ) from None
    return model.eval()


def _sizes(text: str) -> list[list[int]]:
    """'4,3 2' -> [[4, 3], [2]]"""
    return [[int(k) for k in layer.split(",")] for layer in text.split(" ")]


def _reason(error: Exception) -> str:
    return " ".join(line.strip() for line in str(error).splitlines()[:2])


def load_model(path: Path, config: TrainConfig, task: Task) -> tuple[Backbone, dict[str, str]]:
    """(the model in evaluation mode, the metadata) that `save_model` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
        heads = initial_states = value_widths = None
        if config.cell == "nfsm":
            value_widths = [int(width) for width in metadata["value_widths"].split(" ")]
            heads, initial_states = _sizes(metadata["heads"]), _sizes(metadata["initial_states"])
        model = build_model(config, task, heads=heads, initial_states=initial_states, value_widths=value_widths)
        model.load_state_dict(load_file(path))
    except (SafetensorError, OSError, RuntimeError, KeyError, ValueError) as error:
        raise BrokenFile(path, f"these are not the weights of this run ({_reason(error)})") from None
    return model.eval(), metadata
