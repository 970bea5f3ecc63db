"""Models for Hugging Face: configuration, files, generation with a cache of integer states, rollback, padding."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("transformers")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, DynamicCache
    from transformers.utils import logging

    from exactstate.errors import InvalidConfig, InvalidInput
    from exactstate.integrations.transformers import (
        ExactStateConfig,
        ExactStateForCausalLM,
        ExactStateForSequenceClassification,
    )

MIXED, ALONE = ["nfsm", "attention", "nfsm", "attention"], ["nfsm", "nfsm"]
VOCABULARY, PAD, END = 40, 0, 2


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def config_of(mixers: list[str], **more: Any) -> ExactStateConfig:
    return ExactStateConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
        sliding_window=6, mixers=mixers, nfsm_options={"heads": [4, 3, 5]}, pad_token_id=PAD, bos_token_id=1,
        eos_token_id=None, initializer_range=0.3, **more,
    )  # fmt: skip


def model_of(mixers: list[str], seed: int = 0, **more: Any) -> ExactStateForCausalLM:
    torch.manual_seed(seed)
    return ExactStateForCausalLM(config_of(mixers, **more)).eval()


def prompt_of(length: int, seed: int = 1, batch: int = 1) -> Tensor:
    return torch.randint(3, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(seed))


def states_of(cache: DynamicCache, layer: int = 0) -> Tensor:
    return cache.layers[layer].keys[:, 0]


@pytest.mark.parametrize("mixers", [MIXED, ALONE])
@pytest.mark.parametrize("options", [{}, {"num_beams": 4}, {"num_beams": 3, "num_return_sequences": 2}])
def test_generate_with_a_cache_is_generate_without(mixers: list[str], options: dict[str, Any]) -> None:
    """Beams, too: without a cache there is nothing to reorder."""
    model, prompts = model_of(mixers), prompt_of(9, batch=2)
    options = {"max_new_tokens": 16, "do_sample": False, **options}
    assert torch.equal(model.generate(prompts, **options), model.generate(prompts, use_cache=False, **options))


def test_generate_samples_the_same_with_a_cache() -> None:
    model, drawn = model_of(MIXED), []
    for use_cache in (True, False):
        torch.manual_seed(3)
        drawn.append(model.generate(prompt_of(9), max_new_tokens=20, do_sample=True, use_cache=use_cache))
    assert torch.equal(*drawn)


def assisted_is_plain(prompts: int) -> None:
    model, assistant = model_of(MIXED), model_of(["nfsm"], seed=1)
    for seed in range(prompts):
        prompt = prompt_of(3 + seed % 13, seed=seed)
        options = {"max_new_tokens": 16, "do_sample": False}
        want = model.generate(prompt, **options)
        assert torch.equal(model.generate(prompt, assistant_model=assistant, **options), want)
        assert torch.equal(model.generate(prompt, prompt_lookup_num_tokens=3, **options), want)


def test_assisted_generation_gives_the_tokens_of_plain_generation() -> None:
    assisted_is_plain(8)


@pytest.mark.slow
def test_assisted_generation_gives_the_tokens_of_plain_generation_on_many_prompts() -> None:
    assisted_is_plain(1000)


def test_crop_leaves_the_states_of_a_shorter_call() -> None:
    model, tokens = model_of(ALONE), prompt_of(12, batch=3)
    with torch.no_grad():
        cache = model(tokens, use_cache=True).past_key_values
        cache.crop(-5)
        shorter = model(tokens[:, :7], use_cache=True).past_key_values
        assert cache.get_seq_length() == 7
        assert states_of(cache).dtype == torch.uint8
        assert all(torch.equal(states_of(cache, k), states_of(shorter, k)) for k in range(2))
        again = model(tokens[:, 7:], past_key_values=cache, use_cache=True)
    assert all(torch.equal(states_of(again.past_key_values, k)[:, :7], states_of(shorter, k)) for k in range(2))
    whole = model(tokens, use_cache=True)
    assert all(torch.equal(states_of(again.past_key_values, k), states_of(whole.past_key_values, k)) for k in range(2))


def test_prefix_is_reused() -> None:
    model, prefix = model_of(MIXED), prompt_of(10)
    with torch.no_grad():
        cache = model(prefix, use_cache=True).past_key_values
    for seed in range(3):
        prompt = torch.cat([prefix, prompt_of(4, seed=seed)], 1)
        options = {"max_new_tokens": 8, "do_sample": False}
        got = model.generate(prompt, past_key_values=copy.deepcopy(cache), **options)
        assert torch.equal(got, model.generate(prompt, **options))


@pytest.mark.parametrize("mixers", [MIXED, ALONE])
def test_generate_of_a_padded_batch_is_that_of_every_prompt_alone(mixers: list[str]) -> None:
    """Padded on the left, with ends at different times."""
    model, lengths = model_of(mixers), [11, 4, 7, 1]
    prompts = [prompt_of(length, seed=length) for length in lengths]
    tokens = torch.cat([torch.cat([torch.full((1, 11 - p.shape[1]), PAD), p], 1) for p in prompts])
    mask = torch.arange(11) >= 11 - torch.tensor(lengths)[:, None]
    alone = [model.generate(p, max_new_tokens=16, do_sample=False)[0, p.shape[1] :] for p in prompts]
    end = int(alone[0][5])  # a token that the first prompt gives early: the others go on, or end elsewhere
    got = model.generate(tokens, attention_mask=mask.long(), max_new_tokens=16, do_sample=False, eos_token_id=end)
    for row, want in zip(got[:, 11:], alone, strict=True):
        stop = want.tolist().index(end) + 1 if end in want else 16
        assert torch.equal(row[:stop], want[:stop])
        assert bool((row[stop:] == PAD).all())
    with torch.no_grad():
        padded = model(tokens, attention_mask=mask.long(), use_cache=True).past_key_values
        for b, p in enumerate(prompts):
            single = model(p, use_cache=True).past_key_values
            assert torch.equal(states_of(padded)[b, mask[b]], states_of(single)[0])


def test_pretrained_files_give_the_same_model(tmp_path: Path) -> None:
    model = model_of(MIXED)
    model.save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    assert saved["model_type"] == "exactstate"
    assert saved["mixers"] == MIXED
    torch.manual_seed(7)
    found = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert isinstance(found, ExactStateForCausalLM)
    assert all(torch.equal(one, found.state_dict()[name]) for name, one in model.state_dict().items())
    assert torch.equal(found.generate(prompt_of(5), max_new_tokens=9), model.generate(prompt_of(5), max_new_tokens=9))
    memory = ExactStateForCausalLM(config_of(ALONE)).model.layers[0].self_attn.memory
    assert float(memory.bias[0].detach()) == 1.0  # weights begin as those of the layer
    assert float(memory.weight.std()) > 0.1


def test_classifier_reads_the_last_token(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = ExactStateForSequenceClassification(config_of(MIXED, num_labels=3)).eval()
    tokens, mask = prompt_of(8, batch=2), torch.ones(2, 8, dtype=torch.long)
    tokens[1, 5:], mask[1, 5:] = PAD, 0
    out = model(tokens, attention_mask=mask, labels=torch.tensor([0, 2]))
    out.loss.backward()
    torch.testing.assert_close(out.logits[1:], model(tokens[1:, :5]).logits)
    model.save_pretrained(tmp_path)
    assert isinstance(AutoModelForSequenceClassification.from_pretrained(tmp_path), ExactStateForSequenceClassification)


def test_trainer_trains_a_model(tmp_path: Path) -> None:
    from transformers import Trainer, TrainingArguments

    rows = [
        {"input_ids": row, "attention_mask": torch.ones_like(row), "labels": row}
        for row in prompt_of(9, batch=8)
    ]  # fmt: skip
    model = model_of(MIXED)
    before = model.model.layers[0].self_attn.memory.weight.detach().clone()
    arguments = TrainingArguments(
        str(tmp_path), max_steps=2, per_device_train_batch_size=4, report_to=[], use_cpu=True, disable_tqdm=True,
        save_strategy="no",
    )  # fmt: skip
    Trainer(model, arguments, train_dataset=rows).train()
    assert not torch.equal(model.model.layers[0].self_attn.memory.weight, before)


def test_configuration_refuses_what_it_does_not_know() -> None:
    with pytest.raises(InvalidConfig, match="mixers are nfsm or attention"):
        config_of(["nfsm", "mamba"])
    with pytest.raises(InvalidInput, match=r"attention_mask has shape \(B, L\) here; got \(1, 1, 4, 4\)"):
        model_of(ALONE)(prompt_of(4), attention_mask=torch.ones(1, 1, 4, 4))
    default = ExactStateConfig(num_hidden_layers=3)
    assert default.mixers == ["nfsm", "attention", "nfsm"]
    assert default.layer_types == ["full_attention", "sliding_attention", "full_attention"]
