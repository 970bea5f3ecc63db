"""Complex numbers within a block: torch's own, or two arrays of reals for the formats in which torch has none.

    K  steps     d  channels     n  entries     C, R  see `chunked_scan.to_lanes`

Outside a block a number is a pair (Re, Im) in the last dimension. Inside, an array of K d n C R numbers is a complex
tensor of that shape (`NativeComplex`), or one of reals with a first dimension of two (`SplitComplex`), which
is a fifth slower.
"""

from __future__ import annotations

import torch
from torch import Tensor

from exactstate.baselines.blocks import Workspace
from exactstate.baselines.chunked_scan import Diagonal, shift, times, unit


class NativeComplex:
    """Complex tensors."""

    rules = Diagonal()

    def array(self, workspace: Workspace, name: str, shape: tuple[int, ...]) -> Tensor:
        """Memory for an array of this shape."""
        return torch.view_as_complex(workspace(name, *shape, 2))

    def beside(self, pairs: Tensor) -> Tensor:
        """n 2 -> numbers that broadcast along K d n C R, in an array of their own."""
        return torch.view_as_complex(pairs.clone(memory_format=torch.contiguous_format))[:, None, None]

    def pairs(self, x: Tensor) -> Tensor:
        """n numbers -> n 2."""
        return torch.view_as_real(x)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The real parts and the imaginary parts, in place."""
        return x.real, x.imag

    def steps(self, x: Tensor) -> tuple[Tensor, ...]:
        """The array of every step."""
        return x.unbind()

    def one(self, like: Tensor) -> Tensor:
        """The number one, beside states d n R."""
        return like.new_ones(())

    def conjugate_(self, x: Tensor) -> Tensor:
        """In place."""
        return x.conj_physical_()

    def times(self, x: Tensor, y: Tensor, out: Tensor) -> Tensor:
        """The product; `out` may be one of the factors."""
        return torch.mul(x, y, out=out)

    def before(self, h: Tensor, start: Tensor, out: Tensor) -> Tensor:
        """The states before every step, from those after."""
        return shift(h, start, out)

    def inside(self, state: Tensor) -> Tensor:
        """R d n 2 -> d n R numbers."""
        return torch.view_as_complex(state.contiguous()).movedim(0, -1)

    def outside(self, state: Tensor) -> Tensor:
        """d n R numbers -> R d n 2."""
        return torch.view_as_real(state.movedim(-1, 0))


class SplitComplex(NativeComplex):
    """Real tensors, the real parts before the imaginary ones."""

    rules = Diagonal(pairs=True)

    def array(self, workspace: Workspace, name: str, shape: tuple[int, ...]) -> Tensor:
        return workspace(name, 2, *shape)

    def beside(self, pairs: Tensor) -> Tensor:
        return pairs.T.clone()[:, None, None, :, None, None]

    def pairs(self, x: Tensor) -> Tensor:
        return x.T

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x[0], x[1]

    def steps(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.unbind(1)

    def one(self, like: Tensor) -> Tensor:
        return unit(4, like, pairs=True)

    def conjugate_(self, x: Tensor) -> Tensor:
        x[1].neg_()
        return x

    def times(self, x: Tensor, y: Tensor, out: Tensor) -> Tensor:
        return out.copy_(times(x, y, pairs=True))

    def before(self, h: Tensor, start: Tensor, out: Tensor) -> Tensor:
        for part in range(2):
            shift(h[part], start[part], out[part])
        return out

    def inside(self, state: Tensor) -> Tensor:
        return state.permute(3, 1, 2, 0)

    outside = inside


def complex_layout(reals: Tensor) -> NativeComplex:
    """The faster of the layouts that the format of these numbers allows."""
    return NativeComplex() if reals.dtype in (torch.float32, torch.float64) else SplitComplex()
