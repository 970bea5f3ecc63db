"""The floating-point formats that exactstate knows: one list, for bounds, certificates, sweeps and command lines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """A floating-point format; torch and NumPy call it by the same name."""

    name: str
    unit: float
    """Largest relative error of a rounding to nearest, u."""
    tiny: float
    """Largest absolute error where numbers are too small for that; numbers below the normal range may be flushed to 0,
    except in float16, whose normal range is short and whose subnormal numbers are kept."""
    largest: float


FORMATS = {
    "float64": Format(name="float64", unit=2.0**-53, tiny=2.0**-1022, largest=(2.0 - 2.0**-52) * 2.0**1023),
    "float32": Format(name="float32", unit=2.0**-24, tiny=2.0**-126, largest=2.0**128 - 2.0**104),
    "float16": Format(name="float16", unit=2.0**-11, tiny=2.0**-24, largest=65504.0),
    "bfloat16": Format(name="bfloat16", unit=2.0**-8, tiny=2.0**-126, largest=2.0**128 - 2.0**120),
}
"""By name, from fine to coarse."""
NETWORK_FORMATS = ("float32", "float16", "bfloat16")
"""The formats that networks run in, from fine to coarse."""
EXTRACTION_FORMATS = ("float64", "float32")
"""The formats in which an extraction evaluates logits."""
