"""The backbone: shapes, continuing, and what depends on what."""

from __future__ import annotations

import torch

from exactstate.nn import NFSM, Backbone, CausalConvolution


def build(kernel_size, layers=2, **more):
    seeded = torch.Generator().manual_seed(5)
    blocks = [NFSM(16, (3, 2), generator=seeded) for _ in range(layers)]
    return Backbone(7, 5, blocks, width=16, kernel_size=kernel_size, generator=seeded, **more).eval()


def test_continuing_is_one_long_call(generator):
    for kernel_size in (1, 2, 3):
        model = build(kernel_size)
        tokens = torch.randint(0, 7, (3, 40), generator=generator)
        with torch.no_grad():
            whole, _ = model(tokens)
            state, parts = None, []
            for begin, end in ((0, 1), (1, 2), (2, 30), (30, 40)):
                logits, state = model(tokens[:, begin:end], state)
                parts.append(logits)
        # matrix products of other shapes may round otherwise; the states in between are integers
        torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)


def test_without_a_convolution_a_block_reads_the_token_alone(generator):
    model = build(1, layers=1)
    tokens = torch.randint(0, 7, (2, 9), generator=generator)
    with torch.no_grad():
        seen, _ = model.layers[0].block_input(model.encode(tokens))
        alone, _ = model.layers[0].block_input(model.encode(torch.arange(7)))
    torch.testing.assert_close(seen, alone[tokens])


def test_the_convolution_is_causal_and_remembers(generator):
    convolution = CausalConvolution(4, 3, generator=generator)
    x = torch.randn(2, 10, 4, generator=generator)
    y, last = convolution(x)
    assert torch.equal(last, x[:, -2:])
    changed = x.clone()
    changed[:, 6:] += 1
    assert torch.equal(convolution(changed)[0][:, :6], y[:, :6])
    first, state = convolution(x[:, :4])
    assert torch.equal(torch.cat([first, convolution(x[:, 4:], state)[0]], dim=1), y)
    padded = torch.nn.functional.pad(x.transpose(1, 2), (2, 0))
    wanted = torch.nn.functional.conv1d(padded, convolution.weight[:, None], convolution.bias, groups=4)
    torch.testing.assert_close(y, torch.nn.functional.silu(wanted).transpose(1, 2))


def test_answers_have_a_read_out_of_their_own():
    model = build(2, answers=3)
    h, _ = model.hidden(torch.zeros(1, 4, dtype=torch.int64))
    assert model.answer_head is not None
    assert model.answer_head(model.decode(h)).shape == (1, 4, 3)
