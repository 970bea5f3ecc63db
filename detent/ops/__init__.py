"""Transition tables, scans over them, and the NFSM's sampled pass with its gradient."""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.ops.interface import available as available
    from detent.ops.interface import resolve as resolve
    from detent.ops.scan import adjoint as adjoint
    from detent.ops.scan import prefix as prefix
    from detent.ops.scan import run as run
    from detent.ops.tables import compose as compose
    from detent.ops.tables import identity as identity

__all__ = lazy(__name__)
