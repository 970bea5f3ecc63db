"""The backends by name, chosen in sight: `reference` (loops), `tree` (log depth, any device), `cpu` (compiled)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from detent import native
from detent.errors import BackendUnavailable, unknown
from detent.ops import cpu, reference, tree
from detent.ops.torch_kernels import Plain, blas_logits, ordered_logits

SCANS: dict[str, ModuleType] = {"reference": reference, "tree": tree, "cpu": cpu}

_STAGES: dict[str, Any] = {"reference": Plain(reference, ordered_logits), "tree": Plain(tree, blas_logits), "cpu": cpu}


def available() -> tuple[str, ...]:
    """Names of the backends that work here."""
    return tuple(name for name in SCANS if name != "cpu" or native.available())


def resolve(name: str) -> str:
    """The backend that `name` stands for: itself, or for "auto" the fastest that works here."""
    if name == "auto":
        return "cpu" if native.available() else "tree"
    if name == "cpu" and native.available():
        return name
    if name not in SCANS:
        raise unknown("backend", name, ("auto", *SCANS))
    if name == "cpu":
        raise BackendUnavailable(f"backend 'cpu' cannot be used: {native.why_not()}; or pass backend='tree'.")
    return name


def scan(name: str) -> ModuleType:
    """The module with `prefix`, `run` and `adjoint`."""
    return SCANS[resolve(name)]


def stages(name: str) -> Any:
    """What a layer's pass is made of: tables, track, weigh, surrogate, follow, read, collect, logits."""
    return _STAGES[resolve(name)]
