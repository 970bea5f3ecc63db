"""Put a run down and take it up again: weights, moments, generators, counters. JSON and safetensors, no pickle.

A run that is killed goes on from its last checkpoint and ends with the same bits as one that was not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from detent.errors import BrokenFile
from detent.records import write_atomically

VERSION = 1


def save(
    path: Path,
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: np.random.Generator,
    counters: dict[str, Any],
) -> None:
    """Write everything that the next step depends on into one file."""
    from safetensors.torch import save as to_bytes

    tensors = {f"module.{name}": tensor for name, tensor in module.state_dict().items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": torch.as_tensor(value) for name, value in moments.items()}
    tensors["torch"] = torch.get_rng_state()
    written = {
        "version": VERSION,
        "counters": counters,
        "rates": [group["lr"] for group in optimizer.param_groups],
        "generator": _plain(generator.bit_generator.state),
    }
    kept = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, to_bytes(kept, {"state": json.dumps(written)}))


def peek(path: Path) -> dict[str, Any]:
    """The counters alone."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return _written(path, file.metadata())["counters"]
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise _broken(path, error) from None


def load(
    path: Path, module: nn.Module, optimizer: torch.optim.Optimizer, generator: np.random.Generator
) -> dict[str, Any]:
    """Put everything back where it was; returns the counters."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            written = _written(path, file.metadata())
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        module.load_state_dict(_under("module.", tensors))
        described = optimizer.state_dict()
        described["state"] = _moments(_under("optimizer.", tensors))
        for group, rate in zip(described["param_groups"], written["rates"], strict=True):
            group["lr"] = rate
        optimizer.load_state_dict(described)
        generator.bit_generator.state = _arrays(written["generator"])
        torch.set_rng_state(tensors["torch"])
    except (SafetensorError, OSError, KeyError, ValueError, RuntimeError) as error:
        raise _broken(path, error) from None
    return written["counters"]


def _written(path: Path, metadata: dict[str, str] | None) -> dict[str, Any]:
    written = json.loads((metadata or {})["state"])
    if written["version"] != VERSION:
        raise BrokenFile(path, f"this checkpoint has version {written['version']}; version {VERSION} was wanted.")
    return written


def _broken(path: Path, error: Exception) -> BrokenFile:
    if isinstance(error, BrokenFile):
        return error
    reason = f"this is not a checkpoint of this run ({str(error).splitlines()[0]}); remove it to begin again."
    return BrokenFile(path, reason)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _moments(flat: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in flat.items():
        number, field = name.split(".", 1)
        moments.setdefault(int(number), {})[field] = tensor
    return moments


def _plain(value: Any) -> Any:
    """NumPy's description of a generator as JSON can hold it."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return {"array": [int(entry) for entry in value], "dtype": str(value.dtype)}
    return int(value) if isinstance(value, np.integer) else value


def _arrays(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"array", "dtype"}:
        return np.array(value["array"], dtype=value["dtype"])
    return {key: _arrays(entry) for key, entry in value.items()} if isinstance(value, dict) else value
