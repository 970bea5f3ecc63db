"""Affine recurrences h_t = A_t h_{t-1} + b_t: scans in log depth for matrices that stay in their class."""

from exactstate.ops.affine.diagonal import diagonal_loop, diagonal_scan
from exactstate.ops.affine.pd import pd_loop, pd_scan

__all__ = ["diagonal_loop", "diagonal_scan", "pd_loop", "pd_scan"]
