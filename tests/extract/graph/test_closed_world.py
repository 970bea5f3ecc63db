"""What the reader does not know it refuses, and what it accepts the model does: models made to mislead it."""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import exactstate
from exactstate.errors import InvalidInput
from exactstate.extract import Adapter, Extracted, rounding_errors
from exactstate.nn import Backbone

WIDTH, LABELS, SYMBOLS = 16, 4, ["a", "b", "c"]
SIZES = ((1, 1), (1, 2), (5, 3), (3, 7), (8, 12), (3, 65), (1, 130))


class Through(nn.Module):
    """Embedding, layer, and something between the layer and the read-out."""

    def __init__(self, between: Callable[..., Tensor], *parts: nn.Module, tokens: int = 3) -> None:
        super().__init__()
        self.embedding, self.memory = nn.Embedding(tokens, WIDTH), exactstate.NFSM(WIDTH, (3, 2), remember=0.0)
        self.parts, self.readout, self.between = nn.ModuleList(parts), nn.Linear(WIDTH, LABELS), between

    def forward(self, tokens: Tensor) -> Any:
        return self.readout(self.between(self.memory(self.embedding(tokens))[0], *self.parts))


def seeded(build: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return build().eval()


def read(model: Any, *, verify: bool = True, **options: Any) -> Extracted:
    known = inspect.signature(exactstate.extract).parameters
    more = {"verify": verify} if "verify" in known else {}
    return exactstate.extract(model, symbols=SYMBOLS, **options, **more)


@torch.no_grad()
def wrong(model: nn.Module, machine: Extracted, format: str | None = None) -> int:
    """At how many steps the model answers otherwise than the machine."""
    count, rng = 0, np.random.default_rng(1)
    model = copy.deepcopy(model).to(getattr(torch, format)) if format else model
    for batch, length in SIZES:
        words = rng.integers(0, len(SYMBOLS), (batch, length))
        state, labels = np.zeros(batch, int), []
        for symbols in words.T:
            labels.append(machine.readout[symbols, state])
            state = machine.tables[symbols, state]
        logits = model(torch.from_numpy(words))
        logits = logits["logits"] if isinstance(logits, dict) else logits[0] if isinstance(logits, tuple) else logits
        if logits.shape != (batch, length, LABELS):
            return batch * length
        chosen = logits.gather(-1, torch.from_numpy(np.stack(labels, 1))[..., None].long())[..., 0]
        count += int((~(chosen >= logits.amax(-1))).sum())
    return count


def earlier(h: Tensor) -> Tensor:
    return F.pad(h, (0, 0, 1, 0))[:, :-1]


@torch.library.custom_op("exactstate_tests::sum_up", mutates_args=("x",))
def sum_up(x: Tensor) -> None:
    x.copy_(x.cumsum(1))


@sum_up.register_fake
def _(x: Tensor) -> None:
    return None


def in_place(h: Tensor) -> Tensor:
    h = h.clone()
    torch.ops.exactstate_tests.sum_up(h)
    return h


class Negated(exactstate.NFSM):
    def forward(self, *args: Any, **options: Any) -> Any:
        y, state = super().forward(*args, **options)
        return -3.0 * y, state


class OtherLogits(exactstate.NFSM):
    def logits(self, x: Tensor) -> Any:
        return tuple(-part for part in super().logits(x))


def with_layer(layer: exactstate.NFSM) -> nn.Module:
    model = Through(lambda h: h)
    model.memory = layer
    return model


def replaced_forward() -> nn.Module:
    model = Through(lambda h: h)
    inner = model.memory.forward
    model.memory.forward = lambda *args, **options: (-inner(*args, **options)[0], None)
    return model


class Wrapper(nn.Module):
    """Looks like a compiled model and is none."""

    def __init__(self) -> None:
        super().__init__()
        self._orig_mod = Through(lambda h: h)

    def forward(self, tokens: Tensor) -> Tensor:
        return -self._orig_mod(tokens)


class DataParallel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.module = Through(lambda h: h)

    def forward(self, tokens: Tensor) -> Tensor:
        return -self.module(tokens)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def forward(self, h: Tensor) -> Tensor:
        self.n += 1
        return h if self.n % 2 else -h


class Turning(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sign = torch.tensor(1.0)

    def forward(self, h: Tensor) -> Tensor:
        self.sign = -self.sign
        return h * self.sign.to(h.dtype)


class _Tokens(nn.Module):
    def __init__(self, arithmetic: Callable[[Tensor], Tensor], rows: int) -> None:
        super().__init__()
        self.embedding, self.memory = nn.Embedding(rows, WIDTH), exactstate.NFSM(WIDTH, (3, 2), remember=0.0)
        self.readout, self.arithmetic = nn.Linear(WIDTH, LABELS), arithmetic

    def forward(self, tokens: Tensor) -> Tensor:
        return self.readout(torch.tanh(self.memory(self.embedding(self.arithmetic(tokens)))[0]))


def _tokens(arithmetic: Callable[[Tensor], Tensor], rows: int) -> nn.Module:
    return _Tokens(arithmetic, rows)


def lora(linear: nn.Linear, rank: int = 4, scale: float = 4.0) -> nn.Module:
    class LoRA(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = linear
            self.down, self.up = nn.Linear(WIDTH, rank, bias=False), nn.Linear(rank, WIDTH, bias=False)

        @property
        def weight(self) -> Tensor:
            return self.base.weight

        @property
        def bias(self) -> Tensor:
            return self.base.bias

        def forward(self, x: Tensor) -> Tensor:
            return self.base(x) + scale * self.up(self.down(x))

    return LoRA()


def with_lora() -> nn.Module:
    model = Through(torch.tanh)
    model.memory = exactstate.NFSM(WIDTH, (2,) * 8, remember=0.0)
    model.memory.out_proj = lora(model.memory.out_proj)
    return model


def hooked() -> nn.Module:
    model = Through(torch.tanh)
    model.memory.out_proj.register_forward_hook(lambda module, given, result: -2.0 * result)
    return model


class Gate(nn.Module):
    def __init__(self, start: Callable[..., Tensor], use: Callable[..., Tensor]) -> None:
        super().__init__()
        self.c, self.d, self.use = nn.Parameter(start(WIDTH)), nn.Parameter(torch.randn(WIDTH)), use

    def forward(self, h: Tensor) -> Tensor:
        return self.use(h, self.c, self.d)


def gated(use: Callable[..., Tensor], start: Callable[..., Tensor] = torch.randn) -> Callable[[], nn.Module]:
    return lambda: Through(lambda h, gate: gate(h), Gate(start, use))


def normed(variance: float, scale: float = 1.0) -> nn.Module:
    norm = nn.BatchNorm1d(WIDTH)
    with torch.no_grad():
        norm.running_var.fill_(variance)
        norm.running_mean.normal_(0, scale)
        norm.weight.normal_()
    return Through(lambda h, part: part(h.transpose(1, 2)).transpose(1, 2), norm)


def tiny_rms() -> nn.Module:
    model = Through(lambda h, norm: norm(1e-5 * h), nn.RMSNorm(WIDTH))
    with torch.no_grad():
        model.readout.bias.mul_(0.3)
    return model


class Results(nn.Module):
    def __init__(self, result: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.inner, self.other, self.result = Through(torch.tanh), nn.Linear(LABELS, LABELS), result

    def forward(self, tokens: Tensor) -> Any:
        logits = self.inner(tokens)
        return self.result(self.other(logits), logits)


def subclassed_backbone(**replaced: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        kind = type("Other", (Backbone,), replaced)
        return kind(3, LABELS, [exactstate.NFSM(WIDTH, (3, 2), remember=0.0)], width=WIDTH)

    return build


def backbone_with(**parts: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        model = Backbone(3, LABELS, [exactstate.NFSM(WIDTH, (3, 2), remember=0.0)], width=WIDTH)
        for name, part in parts.items():
            setattr(model, name, part())
        return model

    return build


def forward_on_instance() -> nn.Module:
    model = backbone_with()()
    inner = model.forward
    model.forward = lambda tokens: -inner(tokens)[0]
    return model


REFUSED: dict[str, tuple[Callable[[], nn.Module], str, bool]] = {
    # F1: branches on the length or the batch size
    "length above 64": (lambda: Through(lambda h: h if h.shape[1] <= 64 else -h), "branches on the length", False),
    "odd length": (lambda: Through(lambda h: h if h.shape[1] % 2 else -h), "branches on the length", False),
    "batch above 3": (lambda: Through(lambda h: h if h.shape[0] > 3 else -h), "branches on the length", False),
    "length one": (lambda: Through(lambda h: -h if h.shape[1] == 1 else h), "depends on more than the word", True),
    "batch of one": (lambda: Through(lambda h: -h if h.shape[0] == 1 else h), "depends on more than the word", True),
    "smaller of length and 9": (lambda: Through(lambda h: h * (min(h.shape[1], 9) - 5)), "computes with the length",
                                False),
    "truncated": (lambda: Through(lambda h: h[:, :64]), "branches on the length|fixed number of steps", False),
    "one step fewer": (lambda: Through(lambda h: h[:, 1:]), "reads 1 steps ahead|logits for every step", False),
    "squeezed": (lambda: Through(lambda h: h.squeeze()), "gives logits of shape", True),
    # F2: the length as a number
    "tanh of the length": (lambda: Through(lambda h: torch.tanh(h - h.shape[1])), "computes with the length", False),
    "power of the length": (lambda: Through(lambda h: h.abs().pow(h.shape[1])), "computes with the length", False),
    "clamp at the length": (lambda: Through(lambda h: h.clamp(-3, h.shape[1])), "computes with the length", False),
    "root of the length": (lambda: Through(lambda h: h - h.shape[1] ** 0.5), "computes with the length", False),
    "divided by the length": (lambda: Through(lambda h: torch.tanh(h) - 3 / h.shape[1]), "computes with the length",
                              False),
    # F3: arguments that a rule did not look at
    "roll without dims": (lambda: Through(lambda h: torch.roll(h, 2)), "moves steps around", False),
    "roll back without dims": (lambda: Through(lambda h: torch.roll(h, -1)), "moves steps around", False),
    "norm along the steps by keyword": (lambda: Through(lambda h: h / h.norm(dim=1, keepdim=True)),
                                        "over the steps", False),
    # F4: operations that write into an argument
    "custom operation in place": (lambda: Through(in_place), "sum_up|auto_functionalized", False),
    # F5: random numbers
    "normal noise": (lambda: Through(lambda h: h + torch.randn(WIDTH).to(h.dtype)), "random or uninit", False),
    "stochastic depth": (lambda: Through(lambda h: h * (torch.rand(()) > 0.4).to(h.dtype)), "random or uninit", False),
    "bernoulli": (lambda: Through(lambda h: h * torch.bernoulli(torch.full((WIDTH,), 0.5)).to(h.dtype)),
                  "random or uninit", False),
    "filled in place": (lambda: Through(lambda h: h + torch.empty(WIDTH).normal_().to(h.dtype)), "random or uninit",
                        False),
    "uninitialized": (lambda: Through(lambda h: h + torch.empty(WIDTH).to(h.dtype)), "random or uninit", False),
    # F6: code that is not traced
    "layer with its own forward": (lambda: with_layer(Negated(WIDTH, (3, 2))), "a `forward` of its own", False),
    "layer with its own logits": (lambda: with_layer(OtherLogits(WIDTH, (3, 2))), "a `logits` of its own", False),
    "forward replaced on the layer": (replaced_forward, "a `forward` of its own", False),
    "counter": (lambda: Through(lambda h, part: part(h), Counting()), "depends on more than the word", True),
    "tensor kept on self": (lambda: Through(lambda h, part: part(h), Turning()), "depends on more than the word", True),
    "while exporting": (lambda: Through(lambda h: h if torch.compiler.is_exporting() else -h),
                        "depends on more than the word", True),
    "forward replaced on a backbone": (forward_on_instance, "nfsm_eval", False),
    # F8: arithmetic whose row does not exist
    "tokens beyond the table": (lambda: _tokens(lambda t: t + 2, 4), "has 4 rows; row 4 is read", False),
}  # fmt: skip


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_not_known_is_refused_by_name(name: str) -> None:
    build, sentence, by_running = REFUSED[name]
    with pytest.raises(InvalidInput, match=sentence):
        read(seeded(build), verify=by_running)


RIGHT: dict[str, Callable[[], nn.Module]] = {
    # F3
    "clamp at an earlier step": lambda: Through(lambda h: torch.clamp(h, max=earlier(h))),
    "clamp from an earlier step": lambda: Through(lambda h: torch.clamp(h, min=earlier(h))),
    "clamp_min from an earlier step": lambda: Through(lambda h: torch.clamp_min(h, earlier(h))),
    "roll of features": lambda: Through(lambda h: torch.tanh(torch.roll(h, 5, -1))),
    "flip of features": lambda: Through(lambda h: torch.tanh(h.flip(-1))),
    # F6
    "no compiled model": Wrapper,
    "no data-parallel model": DataParallel,
    "backbone with its own forward": subclassed_backbone(
        forward=lambda self, tokens: -Backbone.forward(self, tokens)[0]
    ),
    "backbone with its own label_logits": subclassed_backbone(
        label_logits=lambda self, h: -Backbone.label_logits(self, h)
    ),
    # F7
    "LoRA on the projection": with_lora,
    "hook on the projection": hooked,
    # F8
    "tokens + 2": lambda: _tokens(lambda t: t + 2, 5),
    "tokens * 2": lambda: _tokens(lambda t: t * 2, 5),
    "2 - tokens": lambda: _tokens(lambda t: 2 - t, 3),
    "whether a token": lambda: _tokens(lambda t: t.bool().long(), 3),
    "tokens as bytes": lambda: _tokens(lambda t: (t.to(torch.uint8) * 130).long(), 256),
    # F9
    "RMS norm of small numbers": tiny_rms,
    # R1
    "gate that is shut": gated(lambda h, c, d: h * (1 - torch.sigmoid(c + 16.0))),
    "log(1 + exp)": gated(lambda h, c, d: h * torch.log(1 + torch.exp(c - 17.5))),
    "difference of parameters": gated(lambda h, c, d: h * (c - d), lambda n: 100 + 0.1 * torch.randn(n)),
    "product of parameters": gated(lambda h, c, d: h * (c * d)),
    "exp of a parameter": gated(lambda h, c, d: h * torch.exp(8 * c)),
    # R2, R3
    "large variance": lambda: normed(1e5),
    "large before the gain": lambda: normed(1e-4, 500.0),
    "batch norm": lambda: normed(1.0),
    "division by a parameter": gated(lambda h, c, d: h / c),
    # L3
    "twice the row": lambda: _two_rows(lambda e, t: e(t[..., None].expand(-1, -1, 2)).flatten(2)),
    "two rows, mixed": lambda: _two_rows(lambda e, t: e(t[..., None].expand(-1, -1, 2)).transpose(2, 3).flatten(2)),
    "row times the token": lambda: _two_rows(
        lambda e, t: torch.cat([e(t), e(t) * t[..., None].to(e.weight.dtype)], -1)
    ),
    "readout in parts": backbone_with(
        readout=lambda: nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, LABELS))
    ),
    "no final norm": backbone_with(final_norm=nn.Identity),
    "RMS final norm": backbone_with(final_norm=lambda: nn.RMSNorm(WIDTH)),
    "another encoder": backbone_with(encoder=lambda: nn.Linear(WIDTH, WIDTH)),
    # L4
    "dict of logits": lambda: Results(lambda other, logits: {"aux": other, "logits": logits}),
}  # fmt: skip


class _TwoRows(nn.Module):
    def __init__(self, encode: Callable[[nn.Embedding, Tensor], Tensor]) -> None:
        super().__init__()
        self.embedding, self.encode = nn.Embedding(3, WIDTH // 2), encode
        self.memory, self.readout = exactstate.NFSM(WIDTH, (3, 2), remember=0.0), nn.Linear(WIDTH, LABELS)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.readout(self.memory(self.encode(self.embedding, tokens))[0])


def _two_rows(encode: Callable[[nn.Embedding, Tensor], Tensor]) -> nn.Module:
    return _TwoRows(encode)


@pytest.mark.parametrize("name", list(RIGHT))
def test_what_is_read_is_right_in_every_format_that_is_proved(name: str) -> None:
    model = seeded(RIGHT[name])
    machine = read(model, verify=False)
    assert wrong(model, machine) == 0
    for format in ("float32", "float16", "bfloat16"):
        try:
            errors = rounding_errors(model, machine, format)
        except InvalidInput:  # the rounding of an operation is not bounded
            continue
        used = all(bool((layer.margins[layer.used] > 2 * error[layer.used]).all())
                   for layer, error in zip(machine.layers, errors.columns, strict=True))  # fmt: skip
        if used and bool((machine.label_margins > 2 * errors.labels).all()):
            assert wrong(model, machine, format) == 0, format


PROVED = ("tokens + 2", "LoRA on the projection", "product of parameters", "batch norm", "division by a parameter",
          "RMS final norm", "readout in parts", "twice the row", "roll of features")  # fmt: skip


@pytest.mark.parametrize("name", PROVED)
def test_what_could_be_refused_is_proved_in_float32(name: str) -> None:
    model = seeded(RIGHT[name])
    machine = read(model)
    errors = rounding_errors(model, machine, "float32")
    assert errors.decide(machine)


@pytest.mark.parametrize(("kind", "count"), [(lambda: normed(1e5), 1), (tiny_rms, 1)])
def test_half_precision_is_not_proved_where_it_overflows_or_changes_the_norm(
    kind: Callable[[], nn.Module], count: int
) -> None:
    model = seeded(kind)
    machine = read(model, verify=False)
    errors = rounding_errors(model, machine, "float16")
    assert not errors.decide(machine) or wrong(model, machine, "float16") == 0


def test_results_without_a_name_are_not_guessed() -> None:
    with pytest.raises(InvalidInput, match="which of its results are the logits"):
        read(seeded(lambda: Results(lambda other, logits: (other, logits))))
    with pytest.raises(InvalidInput, match="which of its results are the logits"):
        read(seeded(lambda: Results(lambda other, logits: {"a": other, "b": logits})))


@pytest.mark.parametrize("pair", [
    (torch.sin, torch.exp), (lambda h: torch.softmax(h, -1), lambda h: h.flip(-1)),
    (lambda h: torch.clamp(h, -1, 1), lambda h: torch.clamp(h, 0.5, 1)),
    (lambda h: F.leaky_relu(h, 0.1), lambda h: F.leaky_relu(h, 0.9)),
    (lambda h: torch.where(h > -1, h, 0), lambda h: torch.where(h > 0.5, h, 0)),
    (lambda h: h @ torch.eye(WIDTH).to(h.dtype), lambda h: h @ (-torch.eye(WIDTH)).to(h.dtype)),
])  # fmt: skip
def test_digest_covers_every_operation_with_its_arguments(pair: tuple[Any, Any]) -> None:
    one, other = (read(seeded(lambda f=f: Through(f)), verify=False).weights for f in pair)
    assert one != other


def test_adapters_are_run_on_shuffled_rows_and_twice() -> None:
    model = seeded(lambda: Through(lambda h: h)).double()

    def adapter(encode: Any = model.embedding, read_: Any = model.readout) -> Adapter:
        return Adapter(encode=encode, layers=[(model.memory, lambda h: h, lambda h, y: y)], read=read_)

    read(adapter())
    with pytest.raises(InvalidInput, match="depends on more than the word"):
        read(adapter(encode=lambda t: model.embedding(t) - model.embedding(t).mean(0)))
    with pytest.raises(InvalidInput, match="depends on more than the word"):
        read(adapter(read_=lambda h: model.readout(h) + 3 * torch.randn(1).double() * model.readout.weight[:, 0]))


def test_running_the_model_leaves_random_numbers_alone() -> None:
    model = seeded(lambda: Through(torch.tanh))
    torch.manual_seed(3)
    before, of_python = torch.get_rng_state(), random.getstate()
    read(model)
    assert torch.equal(before, torch.get_rng_state())
    assert random.getstate() == of_python


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_hooks_of_a_wrapper_are_not_lost() -> None:
    compiled = torch.compile(seeded(lambda: Through(torch.tanh)))
    compiled.register_forward_hook(lambda module, given, result: -result)
    with pytest.raises(InvalidInput, match="has hooks"):
        read(compiled)
