"""More models as their users write them: each is read and proved, or refused in a sentence that names the way out."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

import exactstate
from exactstate.errors import InvalidInput
from exactstate.extract import rounding_errors

SYMBOLS, WIDTH, LABELS = ["a", "b", "c"], 8, 4


class Embedded(nn.Module):
    """Embedding, layer, read-out; parts between them are the business of subclasses."""

    def __init__(self, heads: tuple[int, ...] = (3, 2)) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(SYMBOLS), WIDTH)
        self.memory = exactstate.NFSM(WIDTH, heads, remember=0.0)
        self.readout = nn.Linear(WIDTH, LABELS)

    def before(self, h: Tensor) -> Tensor:
        return h

    def after(self, h: Tensor) -> Tensor:
        return h

    def forward(self, tokens: Tensor) -> Any:
        h = self.embedding(tokens)
        return self.readout(self.after(h + self.memory(self.before(h))[0]))


class LlamaBlock(Embedded):
    """RMS norm and SwiGLU, as in Llama."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6)
        self.gate, self.up = nn.Linear(WIDTH, 16, bias=False), nn.Linear(WIDTH, 16, bias=False)
        self.down = nn.Linear(16, WIDTH, bias=False)

    def before(self, h: Tensor) -> Tensor:
        return self.norm(h)

    def after(self, h: Tensor) -> Tensor:
        x = self.norm(h)
        return h + self.down(F.silu(self.gate(x)) * self.up(x))


class NormByHand(LlamaBlock):
    """The same with the norm by hand: its parts are read, and the division by a root of the input is not bounded."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.epsilon = nn.Parameter(torch.rand(WIDTH) + 0.5), 1e-6

    def before(self, h: Tensor) -> Tensor:
        return self.scale * h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.epsilon)


class BatchNormFront(Embedded):
    """Linear, batch norm and ReLU, twice, as in a speech front end."""

    def __init__(self) -> None:
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in range(2))
        for norm in self.norms:
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2.0)

    def before(self, h: Tensor) -> Tensor:
        for linear, norm in zip(self.linears, self.norms, strict=True):
            h = F.relu(norm(linear(h).transpose(1, 2)).transpose(1, 2))
        return h


class LoraLinear(nn.Module):
    """A frozen map and a trained low-rank one beside it, as in peft."""

    def __init__(self, base: nn.Linear, rank: int = 2, alpha: float = 4.0) -> None:
        super().__init__()
        self.base, self.scaling = base.requires_grad_(False), alpha / rank
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.lora_B(self.lora_A(self.dropout(x))) * self.scaling


class LoraTuned(Embedded):
    def __init__(self) -> None:
        super().__init__()
        self.readout = LoraLinear(self.readout)  # type: ignore[assignment]
        self.memory.out_proj = LoraLinear(self.memory.out_proj)  # type: ignore[assignment]


class WeightNormed(Embedded):
    def __init__(self) -> None:
        super().__init__()
        self.map = parametrizations.weight_norm(nn.Linear(WIDTH, WIDTH))
        self.readout = parametrizations.weight_norm(self.readout)

    def before(self, h: Tensor) -> Tensor:
        return torch.tanh(self.map(h))


class TwoConvolved(Embedded):
    """Two layers, each behind a depthwise convolution that is padded on the left."""

    def __init__(self) -> None:
        super().__init__((2, 2))
        self.convs = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 2, groups=WIDTH) for _ in range(2))
        self.second = exactstate.NFSM(WIDTH, (2,), remember=0.0)
        self.norm = nn.LayerNorm(WIDTH)

    def mixed(self, h: Tensor, layer: int) -> Tensor:
        return F.silu(self.convs[layer](F.pad(h.transpose(1, 2), (1, 0)))).transpose(1, 2)

    def before(self, h: Tensor) -> Tensor:
        return self.mixed(h, 0)

    def after(self, h: Tensor) -> Tensor:
        return self.norm(h + self.second(self.mixed(h, 1))[0])


@dataclass
class Output:
    """As `transformers.modeling_outputs.TokenClassifierOutput`."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] = ()


torch.utils._pytree.register_dataclass(Output)


class OutputObject(Embedded):
    """Returns an object, as models of the Hugging Face library do."""

    def forward(self, tokens: Tensor) -> Output:
        h = self.embedding(tokens)
        y = h + self.memory(h)[0]
        return Output(logits=self.readout(y), hidden_states=(h, y))


Pair = namedtuple("Pair", ["logits", "value"])


class ActorCritic(Embedded):
    """Logits of actions and a value, in a named tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Linear(WIDTH, 1)

    def forward(self, tokens: Tensor) -> Pair:
        h = self.memory(self.embedding(tokens))[0]
        return Pair(self.readout(h), self.value(h))


class Highway(Embedded):
    """Gates of the input and of parameters, a temperature, tied embedding and read-out."""

    def __init__(self) -> None:
        super().__init__()
        self.carry, self.temperature = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.tensor(0.3))
        self.readout = nn.Linear(WIDTH, len(SYMBOLS), bias=False)
        self.readout.weight = self.embedding.weight

    def after(self, h: Tensor) -> Tensor:
        gate = torch.sigmoid(self.carry(h))
        return (gate * h + (1 - gate) * torch.tanh(h)) * torch.exp(-self.temperature)


class Pooled(Embedded):
    """Mean of the steps so far, as a pooled classifier has it: not finite-state."""

    def after(self, h: Tensor) -> Tensor:
        return h.cumsum(1) / torch.arange(1, h.shape[1] + 1, device=h.device)[None, :, None]


class Attending(Embedded):
    """Attends to the past beside the layer, as hybrids do."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True)

    def after(self, h: Tensor) -> Tensor:
        return self.attention(h, is_causal=True, src_mask=nn.Transformer.generate_square_subsequent_mask(h.shape[1]))


PROVED = (
    LlamaBlock, BatchNormFront, LoraTuned, WeightNormed, TwoConvolved, OutputObject, ActorCritic, Highway,
)  # fmt: skip
REFUSED: dict[type[nn.Module], str] = {
    Pooled: r"sums over all steps so far, which no finite state can hold",
    Attending: r"attends to other steps|steps by steps|depends on the length",
}


def logits_of(outputs: Any) -> Tensor:
    return outputs if isinstance(outputs, Tensor) else outputs.logits


def build(kind: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(3)
    return kind().eval()


@torch.no_grad()
def answers(model: nn.Module, words: np.ndarray) -> np.ndarray:
    return logits_of(model(torch.from_numpy(words))).argmax(-1).numpy()


def run(machine: Any, words: np.ndarray) -> np.ndarray:
    state, found = np.zeros(len(words), int), []
    for symbols in words.T:
        found.append(machine.readout[symbols, state])
        state = machine.tables[symbols, state]
    return np.stack(found, 1)


@pytest.mark.parametrize("kind", PROVED, ids=lambda kind: kind.__name__)
def test_models_from_the_wild_are_read_and_proved(kind: type[nn.Module]) -> None:
    model = build(kind)
    machine = exactstate.extract(model, symbols=SYMBOLS)
    words = np.random.default_rng(0).integers(0, len(SYMBOLS), (20, 40))
    assert np.array_equal(run(machine, words), answers(model, words))
    assert rounding_errors(model, machine, "float32").decide(machine)


def test_a_norm_by_hand_is_read_and_its_rounding_is_refused_by_name() -> None:
    model = build(NormByHand)
    machine = exactstate.extract(model, symbols=SYMBOLS)
    words = np.random.default_rng(0).integers(0, len(SYMBOLS), (20, 40))
    assert np.array_equal(run(machine, words), answers(model, words))
    with pytest.raises(InvalidInput, match=r"the rounding of \w+ in the model \(NormByHand\) is not bounded"):
        rounding_errors(model, machine, "float32")


@pytest.mark.parametrize("kind", list(REFUSED), ids=lambda kind: kind.__name__)
def test_models_from_the_wild_that_have_no_finite_state_are_refused(kind: type[nn.Module]) -> None:
    with pytest.raises(InvalidInput, match=REFUSED[kind]) as caught:
        exactstate.extract(build(kind), symbols=SYMBOLS)
    assert "Adapter" in str(caught.value)
