"""Transition tables, scans over them, and the NFSM's sampled pass with its gradient."""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.ops.interface import available as available
    from exactstate.ops.interface import resolve as resolve
    from exactstate.ops.scan import adjoint as adjoint
    from exactstate.ops.scan import prefix as prefix
    from exactstate.ops.scan import run as run
    from exactstate.ops.tables import compose as compose
    from exactstate.ops.tables import identity as identity

__all__ = lazy(__name__)
