"""Hugging Face models whose layers are NFSM blocks and window attention: `pip install '.[transformers]'`.

    B  batch     L  length     m  width     r  heads

Importing this module registers `ExactStateConfig`, `ExactStateForCausalLM` and `ExactStateForSequenceClassification`
with the Auto classes. The blocks are those of Mistral; in the layers that the configuration says, an NFSM stands where
attention stood. Its cache is the index of every head after every token, r small integers, kept in the cache layer of
full attention: so `generate()` reorders it for beams, crops it for assisted decoding, exactly, and reuses prefixes.
"""

from __future__ import annotations

from typing import Any

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification
from transformers.cache_utils import Cache
from transformers.modeling_layers import GenericForSequenceClassification
from transformers.models.mistral.configuration_mistral import MistralConfig
from transformers.models.mistral.modeling_mistral import MistralForCausalLM, MistralModel, MistralPreTrainedModel

from exactstate.errors import InvalidConfig, InvalidInput
from exactstate.nn import NFSM
from exactstate.ops.eager import is_traced
from exactstate.ops.tables import cell_dtype

MIXERS = ("nfsm", "attention")


@strict
class ExactStateConfig(MistralConfig):
    """Sizes as in Mistral; in the layers that `mixers` says, an NFSM stands for attention to a sliding window."""

    model_type = "exactstate"

    hidden_size: int = 256
    intermediate_size: int = 768
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 4
    sliding_window: int | None = 64
    mixers: list[str] | None = None
    """"nfsm" or "attention" for every layer; by default in turn, the NFSM first."""
    nfsm_options: dict[str, Any] | None = None
    """Arguments of `exactstate.NFSM` but its width, such as {"heads": [12] * 16, "gate": True}."""
    layer_types: list[str] | None = None
    """The kind of cache of every layer: follows from `mixers`."""

    def __post_init__(self, **kwargs: Any) -> None:
        if self.mixers is None:
            self.mixers = [MIXERS[depth % 2] for depth in range(self.num_hidden_layers)]
        if not self.mixers or any(mixer not in MIXERS for mixer in self.mixers):
            raise InvalidConfig(f"mixers are {' or '.join(MIXERS)}, one for each layer; got {self.mixers}.")
        self.num_hidden_layers = len(self.mixers)
        attention = "full_attention" if self.sliding_window is None else "sliding_attention"
        self.layer_types = ["full_attention" if mixer == "nfsm" else attention for mixer in self.mixers]
        super().__post_init__(**kwargs)


class NfsmMixer(nn.Module):
    """An NFSM in the place of a block's attention."""

    def __init__(self, config: ExactStateConfig, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        self.memory = NFSM(config.hidden_size, **(config.nfsm_options or {}))

    def forward(
        self, hidden_states: Tensor, token_mask: Tensor | None = None, past_key_values: Cache | None = None, **_: Any
    ) -> tuple[Tensor, None]:
        """(B L m, None); reads the state before these tokens from the cache, and appends those after each of them."""
        L, start = hidden_states.shape[1], None
        mask = None if token_mask is None else token_mask[:, -L:].bool()
        if mask is not None and not is_traced(hidden_states) and bool(mask.all()):
            mask = None
        if past_key_values is not None and past_key_values.get_seq_length(self.layer_idx):
            layer: Any = past_key_values.layers[self.layer_idx]
            start = layer.keys[:, 0, -1].long()
        y, final = self.memory(hidden_states, start, lengths=mask)
        if past_key_values is not None:
            states = final[:, None] if L == 1 else self.memory.states(hidden_states, start, lengths=mask)
            cells = states.to(cell_dtype(self.memory.heads))[:, None]  # as keys of one head, with values of width 0
            past_key_values.update(cells, cells[..., :0], self.layer_idx)
        return y, None


class ExactStatePreTrainedModel(MistralPreTrainedModel):
    """What the models have in common: how weights begin."""

    config: ExactStateConfig
    config_class = ExactStateConfig

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if not isinstance(module, NFSM):
            super()._init_weights(module)
        elif not getattr(module.weight, "_is_hf_initialized", False):
            module.reset_parameters()


class ExactStateModel(ExactStatePreTrainedModel, MistralModel):
    """Tokens to hidden states, B L -> B L m."""

    def __init__(self, config: ExactStateConfig) -> None:
        super().__init__(config)
        for depth, mixer in enumerate(config.mixers or ()):
            if mixer == "nfsm":
                self.layers[depth].self_attn = NfsmMixer(config, depth)
        self.post_init()

    def forward(self, input_ids: Tensor | None = None, attention_mask: Tensor | None = None, **call: Any) -> Any:
        """As `MistralModel`; padding (zeros of the mask, B L) stands before or behind the tokens."""
        if attention_mask is not None and attention_mask.ndim != 2:
            raise InvalidInput(f"attention_mask has shape (B, L) here; got {tuple(attention_mask.shape)}.")
        return super().forward(input_ids, attention_mask=attention_mask, token_mask=attention_mask, **call)


class ExactStateForCausalLM(ExactStatePreTrainedModel, MistralForCausalLM):
    """The next token."""

    def __init__(self, config: ExactStateConfig) -> None:
        super().__init__(config)
        self.model = ExactStateModel(config)
        self.post_init()


class ExactStateForSequenceClassification(GenericForSequenceClassification, ExactStatePreTrainedModel):
    """A label from the last token of a sequence."""


AutoConfig.register("exactstate", ExactStateConfig, exist_ok=True)
AutoModel.register(ExactStateConfig, ExactStateModel, exist_ok=True)
AutoModelForCausalLM.register(ExactStateConfig, ExactStateForCausalLM, exist_ok=True)
AutoModelForSequenceClassification.register(
    ExactStateConfig, ExactStateForSequenceClassification, exist_ok=True
)  # fmt: skip
