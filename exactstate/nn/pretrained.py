"""A layer as a folder: its configuration as JSON, its weights as safetensors. Nothing in it is ever executed."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from exactstate.errors import BrokenFile
from exactstate.records import write_atomically

_Layer = TypeVar("_Layer", bound="Pretrained")


class Pretrained:
    """For layers with a `config` dataclass whose fields are the arguments of the constructor."""

    config: Any

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `config.json` and `model.safetensors` into the folder."""
        from safetensors.torch import save

        assert isinstance(self, nn.Module)
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        settings = {"layer": type(self).__name__, **asdict(self.config)}
        write_atomically(path / "model.safetensors", save(weights))
        write_atomically(path / "config.json", (json.dumps(settings, indent=2) + "\n").encode())

    @classmethod
    def from_pretrained(cls: type[_Layer], folder: str | Path, *, backend: str = "auto") -> _Layer:
        """The layer that `save_pretrained` wrote."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = Path(folder)
        try:
            settings = json.loads((path / "config.json").read_text())
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise BrokenFile(path / "config.json", f"not JSON ({error})") from None
        except OSError as error:
            raise BrokenFile(path / "config.json", f"cannot be read ({error.strerror})") from None
        if not isinstance(settings, dict) or settings.pop("layer", None) != cls.__name__:
            raise BrokenFile(path / "config.json", f"this is not the configuration of a {cls.__name__}")
        try:
            layer = cls(**settings, backend=backend)  # type: ignore[call-arg]
        except TypeError as error:
            raise BrokenFile(path / "config.json", f"a setting does not fit ({error})") from None
        assert isinstance(layer, nn.Module)
        try:
            weights = load_file(path / "model.safetensors")
            dtype = next(iter(weights.values())).dtype if weights else None
            layer.to(dtype).load_state_dict(weights)
        except (SafetensorError, OSError, RuntimeError) as error:
            raise BrokenFile(path / "model.safetensors", str(error).splitlines()[0]) from None
        return layer
