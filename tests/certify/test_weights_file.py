"""`digest_of_file`: the digest that `extract` gives a model, read from its file without torch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from exactstate.certify.weights_file import digest_of_file
from exactstate.errors import BrokenFile
from exactstate.extract.extract import digest


def test_digest_of_file_equals_digest_of_the_model(tmp_path: Path) -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 1)).to(dtype)
        save_file(model.state_dict(), tmp_path / "w.safetensors", {"heads": "3"})
        assert digest_of_file(tmp_path / "w.safetensors") == digest(model)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"1234567", b"\xff" * 16, (2).to_bytes(8, "little") + b"[]", (2).to_bytes(8, "little") + b"{",
        (60).to_bytes(8, "little") + b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,400000000]}}'[:60],
        (61).to_bytes(8, "little") + b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,40000000]}}',
        (54).to_bytes(8, "little") + b'{"a":{"dtype":"X9","shape":[1],"data_offsets":[0,0]}} ',
    ],
)  # fmt: skip
def test_digest_of_file_of_something_else(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "w.safetensors").write_bytes(data)
    with pytest.raises(BrokenFile, match="this is not a safetensors file"):
        digest_of_file(tmp_path / "w.safetensors")
    with pytest.raises(BrokenFile, match="there is no such file"):
        digest_of_file(tmp_path / "none")
