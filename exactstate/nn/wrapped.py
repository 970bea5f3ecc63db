"""Projections that were wrapped or hooked: LoRA, quantization, pruning masks, hooks that log or change outputs.

A plain `nn.Linear` is only its weight and bias, and layers may read these instead of calling it. Anything else has to
be called to have its effect, and extraction, which reads weights, has to refuse it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from torch import Tensor, nn

from exactstate.errors import InvalidInput


def is_plain(linear: nn.Module) -> bool:
    """Whether calling the module is its weight and bias and nothing more.

    A parametrization (`torch.nn.utils.parametrize`) is plain: it computes the weight when it is read.
    """
    kind = type(linear)
    return (
        (kind is nn.Linear or (isinstance(linear, nn.Linear) and kind.forward is nn.Linear.forward))
        and "forward" not in linear.__dict__
        and not has_hooks(linear)
    )


def looked_up(module: nn.Module, *names: str) -> list[Tensor]:
    """Parameters by name, several times faster than as attributes; those with a parametrization are computed."""
    held = module._parameters
    return [held[name] if name in held else getattr(module, name) for name in names]  # type: ignore[misc]


def own_class(module: nn.Module, kind: type[nn.Module]) -> str | None:
    """What this module has replaced of the methods of `kind`, by a subclass or on itself, if anything."""
    if not isinstance(module, kind):
        return type(module).__name__
    for name, member in vars(kind).items():
        if name.startswith("__") and name != "__call__":
            continue
        method = callable(member) or isinstance(member, property | staticmethod | classmethod)
        if method and (inspect.getattr_static(type(module), name) is not member or name in module.__dict__):
            return name
    return "__call__" if type(module).__call__ is not nn.Module.__call__ else None


def has_hooks(module: nn.Module) -> bool:
    """Whether anything is called before or after the module."""
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )


def wrapped_modules(model: nn.Module) -> Iterator[tuple[str, str]]:
    """(name, why) of every part of a model whose weights do not tell what it computes."""
    for name, module in model.named_modules():
        if has_hooks(module):
            yield name or type(module).__name__, "has hooks"
        elif name.rpartition(".")[2] in ("out_proj", "mix_proj", "gate_proj") and not is_plain(module):
            yield name, f"is a {type(module).__name__} instead of a plain nn.Linear"


def refuse_wrapped(model: nn.Module) -> None:
    """Raise InvalidInput for a model that cannot be read from its weights."""
    for name, why in wrapped_modules(model):
        raise InvalidInput(
            f"extraction reads weights, and {name} {why}, so what it computes is not in them; merge or remove it first "
            "(peft: `model.merge_and_unload()`, hooks: `handle.remove()`)."
        )


def refuse_gated(model: nn.Module) -> None:
    """Raise InvalidInput for a model with an NFSM whose output is gated by its input."""
    for name, module in model.named_modules():
        if getattr(module, "gate_proj", None) is not None and hasattr(module, "heads"):
            raise InvalidInput(
                f"extraction does not know output gates, and {name or 'this layer'} was built with gate=True; build "
                "the layer without it."
            )
