"""Affine recurrences h_t = A_t h_{t-1} + b_t: scans in log depth for matrices that stay in their class."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.ops.affine.diagonal import diagonal_loop as diagonal_loop
    from exactstate.ops.affine.diagonal import diagonal_scan as diagonal_scan
    from exactstate.ops.affine.pd import pd_loop as pd_loop
    from exactstate.ops.affine.pd import pd_scan as pd_scan

__all__ = lazy(__name__)
