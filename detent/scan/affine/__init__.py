"""Affine recurrences h_t = A_t h_{t-1} + b_t: scans in log depth for matrices that stay in their class."""

from __future__ import annotations

from detent.scan.affine.diagonal import diagonal_loop as diagonal_loop
from detent.scan.affine.diagonal import diagonal_scan as diagonal_scan
from detent.scan.affine.pd import pd_loop as pd_loop
from detent.scan.affine.pd import pd_scan as pd_scan
