"""Memory for the large arrays of a block, used again for the next: fresh pages would cost more than the arithmetic."""

from __future__ import annotations

from math import prod

from torch import Tensor


class Room:
    """Named arrays of any shape, of the type and on the device of `like`; what was in them is not kept."""

    def __init__(self, like: Tensor) -> None:
        self.like = like
        self.held: dict[str, Tensor] = {}

    def __call__(self, name: str, *shape: int) -> Tensor:
        size = prod(shape)
        if name not in self.held or self.held[name].numel() < size:
            self.held[name] = self.like.new_empty(size)
        return self.held[name][:size].view(shape)
