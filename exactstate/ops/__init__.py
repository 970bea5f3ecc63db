"""Transition tables, scans over them, and the NFSM's sampled pass with its gradient.

Importing this package registers the operators `torch.ops.exactstate.*` that a file of `torch.export` names.
"""

import exactstate.ops.nfsm_op
import exactstate.ops.ordered_linear  # noqa: F401
from exactstate.ops.interface import available, resolve
from exactstate.ops.scan import adjoint, prefix, run
from exactstate.ops.tables import compose, identity

__all__ = ["adjoint", "available", "compose", "identity", "prefix", "resolve", "run"]
