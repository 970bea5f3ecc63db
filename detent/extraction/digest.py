"""One number for all weights of a model: SHA-256 over names, types, shapes and bytes, in the order of the names."""

from __future__ import annotations

import hashlib

import torch
from torch import nn


def digest(model: nn.Module) -> str:
    """The SHA-256 of a model's weights, in hexadecimal; the same on every device and for every way of building it.

    For every entry of the state dict, sorted by name: the line "name dtype shape", the bytes in row-major order and in
    little-endian, and a line end.
    """
    found = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        held = tensor.detach().cpu().contiguous()
        shape = "x".join(map(str, held.shape))
        found.update(f"{name} {str(held.dtype).removeprefix('torch.')} {shape}\n".encode())
        found.update(held.reshape(-1).view(torch.uint8).numpy().tobytes())
        found.update(b"\n")
    return found.hexdigest()
