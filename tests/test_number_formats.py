"""The number formats are those of torch, ordered from fine to coarse."""

from __future__ import annotations

import pytest
import torch

from exactstate.number_formats import EXTRACTION_FORMATS, FORMATS, NETWORK_FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_those_of_torch(name: str) -> None:
    format, known = FORMATS[name], torch.finfo(getattr(torch, name))
    assert (format.unit, format.largest) == (known.eps / 2, known.max)
    assert format.tiny == (2.0**-24 if name == "float16" else known.tiny)


def test_formats_are_ordered_from_fine_to_coarse() -> None:
    units = [format.unit for format in FORMATS.values()]
    assert units == sorted(units)
    for some in (NETWORK_FORMATS, EXTRACTION_FORMATS):
        assert list(some) == [name for name in FORMATS if name in some]
