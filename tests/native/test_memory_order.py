"""What crosses into compiled code has the order and the type that it reads: any other layout gives the same result,
any other type is refused or converted, and `native.address` refuses the rest."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from exactstate import native
from exactstate.automata import Mealy, Moore
from exactstate.automata.run import compiled_outputs, trajectories
from exactstate.errors import InvalidInput, InvalidWord
from exactstate.learning import PrefixTree, TraceTree, learn, merge_states
from exactstate.learning.prefix_tree import TreeArrays
from exactstate.nn import NFSM, soft_states
from exactstate.ops import adjoint, prefix, run
from exactstate.ops.ordered_linear import ordered_linear
from exactstate.runtime import Machine
from exactstate.runtime.filter import Filter

pytestmark = pytest.mark.skipif(not native.available(), reason=f"needs the compiled kernels: {native.why_not()}")

SYMBOLS, STATES, WORDS, LENGTH, HEADS = 5, 7, 6, 9, (3, 4)


def fortran(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return np.asfortranarray(array)
    return array.mT.contiguous().mT if array.ndim > 1 else array


def every_second(array: Any) -> Any:
    """The array as every second number of a larger one."""
    if isinstance(array, np.ndarray):
        return np.repeat(array, 2, axis=-1)[..., ::2]
    return array.repeat_interleave(2, -1)[..., ::2]


def backwards(array: Any) -> Any:
    """The array with strides below zero; tensors have none, so theirs lie in the other order of their axes."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(np.flip(array))[(slice(None, None, -1),) * array.ndim]
    axes = tuple(reversed(range(array.ndim)))
    return array.permute(axes).contiguous().permute(axes)


def swapped_bytes(array: Any) -> Any:
    return array.astype(array.dtype.newbyteorder()) if isinstance(array, np.ndarray) else array


LAYOUTS = (fortran, every_second, backwards, swapped_bytes)


def plain() -> np.random.Generator:
    return np.random.default_rng(3)


def integers(below: int, *shape: int, dtype: Any = np.int64) -> np.ndarray:
    return plain().integers(0, below, shape).astype(dtype)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def tables() -> torch.Tensor:
    columns = [torch.from_numpy(integers(d, WORDS, LENGTH, d)) for d in HEADS]
    return torch.cat(columns, -1).to(torch.uint8)


def learned(symbols: Any, outputs: Any) -> list[Any]:
    tree = PrefixTree()
    tree.add(symbols, outputs)
    merged = merge_states(tree, symbols=SYMBOLS, outputs=3)
    return [*vars(tree.arrays).values(), merged.tables, merged.readout]


def layer(x: Any, weight: Any) -> list[Any]:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        made = NFSM(4, heads=HEADS, backend="cpu").eval()
    inner = next(p for name, p in made.named_parameters() if p.ndim == 2 and "out_proj" not in name)
    inner.data = weight
    made.out_proj.weight.data = normal(*made.out_proj.weight.shape)
    made.out_proj.bias.data.zero_()
    for name, p in made.named_parameters():
        if p.ndim == 1 and "out_proj" not in name:
            p.data.zero_()
    x = x.detach().requires_grad_()
    y, state = made(x)
    (y * y.detach().cos()).sum().backward()
    grad = inner.grad
    inner.data = weight.contiguous()  # a single step refuses weights in another order
    with torch.no_grad():
        stepped, after = made.step(x[:, 0], state)
        read, last = made(x, state)
    return [y.detach(), state, x.grad, grad, stepped, after, read, last]


def soft(x: Any, weight: Any, bias: Any, start: Any, index: Any = None) -> list[Any]:
    x = x.detach().requires_grad_()
    states = soft_states(x, weight, bias, HEADS, start, 1.0, row_index=index, backend="cpu")
    states.square().sum().backward()
    return [states.detach(), x.grad]


def merged_trees(*arrays: Any) -> list[Any]:
    tree = PrefixTree()
    tree.merge_arrays(TreeArrays(*arrays), 6)
    return [*vars(tree.arrays).values(), tree.arrays.ranks]


def small_tree() -> TreeArrays:
    tree = PrefixTree()
    tree.add(integers(SYMBOLS, WORDS, LENGTH), integers(SYMBOLS, WORDS, LENGTH) % 3)
    return tree.arrays


def noisy(symbols: Any, outputs: Any) -> list[Any]:
    log = TraceTree()
    log.add_pairs((symbols.astype("U").tolist(), outputs.astype("U").tolist()))
    found = learn(log, noise=0.1)
    return [found.machine.tables, found.machine.readout]


def streamed(readout: Any, moves: Any, words: Any) -> list[Any]:
    made = Machine.of(Moore(symbols=tuple("abcde"), tables=moves, outputs=("x", "y", "z"), readout=readout))
    text = " ".join("abcde"[a] for a in words.ravel().tolist()).encode()
    written = Filter(machine=made)
    names = Machine.of(Moore(symbols=("ab c", *"bcde"), tables=moves, outputs=("x", "y", "z"), readout=readout))
    return [
        made.stream().push(words[0]), made.stream().skip(words[0]),
        np.frombuffer(written.feed(text) + written.finish(), np.uint8),
        np.frombuffer(Filter(machine=names).feed(b"ab c b c d e\n"), np.uint8),
    ]  # fmt: skip


def machine(build: Any, readout: Any, moves: Any, words: Any) -> list[Any]:
    made = Machine.of(build(
        symbols=tuple("abcde"), tables=moves, outputs=("x", "y", "z"), readout=readout,
    ))  # fmt: skip
    return [made.run(words), made.trajectory(words), made.output_ids(words)]


E = sum(d * d for d in HEADS)
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "trajectories": (
        trajectories, (integers(STATES, SYMBOLS, STATES, dtype=np.uint32), integers(SYMBOLS, WORDS, LENGTH),
                       integers(STATES, WORDS)),
    ),
    "compiled_outputs": (
        compiled_outputs,
        (integers(STATES, SYMBOLS, STATES, dtype=np.uint8), integers(3, SYMBOLS, STATES, dtype=np.uint8),
         integers(SYMBOLS, WORDS, LENGTH), integers(STATES, WORDS)),
    ),
    "Moore": (
        lambda *arrays: machine(Moore, *arrays),
        (integers(3, STATES), integers(STATES, SYMBOLS, STATES), integers(SYMBOLS, WORDS, LENGTH)),
    ),
    "Mealy": (
        lambda *arrays: machine(Mealy, *arrays),
        (integers(3, SYMBOLS, STATES), integers(STATES, SYMBOLS, STATES), integers(SYMBOLS, WORDS, LENGTH)),
    ),
    "Stream and Filter": (
        streamed, (integers(3, STATES), integers(STATES, SYMBOLS, STATES), integers(SYMBOLS, WORDS, LENGTH)),
    ),
    "learn with noise": (noisy, (integers(SYMBOLS, WORDS, LENGTH), integers(SYMBOLS, WORDS, LENGTH) % 3)),
    "PrefixTree.merge_arrays": (merged_trees, tuple(vars(small_tree()).values())),
    "PrefixTree": (learned, (integers(SYMBOLS, WORDS, LENGTH), integers(SYMBOLS, WORDS, LENGTH) % 3)),
    "prefix": (lambda t: prefix(t, HEADS, backend="cpu"), (tables(),)),
    "run": (
        lambda t, start: run(t, start, HEADS, backend="cpu"),
        (tables(), torch.from_numpy(integers(3, WORDS, 2))),
    ),
    "adjoint": (
        lambda t, gains, last: adjoint(t, gains, last, HEADS, backend="cpu"),
        (tables(), normal(WORDS, LENGTH, sum(HEADS)), normal(WORDS, sum(HEADS))),
    ),
    "ordered_linear": (
        lambda *tensors: ordered_linear(*tensors, "cpu"), (normal(LENGTH, 4), normal(E, 4), normal(E)),
    ),
    "soft_states": (
        soft,
        (normal(WORDS, LENGTH, 4), normal(E, 4), normal(E), torch.from_numpy(integers(3, WORDS, 2))),
    ),
    "soft_states of rows": (
        soft,
        (normal(SYMBOLS, 4), normal(E, 4), normal(E), torch.from_numpy(integers(3, WORDS, 2)),
         torch.from_numpy(integers(SYMBOLS, WORDS, LENGTH))),
    ),
    "NFSM": (layer, (normal(WORDS, LENGTH, 4), normal(E, 4))),
}  # fmt: skip


WITHOUT_ARRAYS = {
    "tree_new", "tree_free", "tree_nodes", "tree_observations", "merger_free", "merger_run", "merger_work", "edge_hash",
    "word_hash", "register_features", "gumbel",
}  # fmt: skip
"""Functions of the library that take no array; `gumbel` is called by its own test only."""


def test_every_function_of_the_library_that_takes_an_array_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    real, called = native.library(), set[str]()

    class Recorder:
        def __getattr__(self, name: str) -> Any:
            called.add(name)
            return getattr(real, name)

    monkeypatch.setattr(native, "library", Recorder)
    for call, inputs in CALLS.values():
        call(*inputs)
    real_types = {name.removesuffix("_f32") for name in native.SIGNATURES if not name.endswith("_f64")}
    wanted = {name.removeprefix("exactstate_") for name in real_types} - WITHOUT_ARRAYS
    reached = {name.removeprefix("exactstate_").removesuffix("_f32").removesuffix("_f64") for name in called}
    assert wanted - reached == set()


def flat(result: Any) -> list[torch.Tensor]:
    if isinstance(result, (list, tuple)):
        return [tensor for part in result for tensor in flat(part)]
    return [torch.as_tensor(np.asarray(result).astype(np.int64) if isinstance(result, np.ndarray) else result)]


@pytest.mark.parametrize("name", CALLS)
def test_a_result_does_not_depend_on_the_layout_of_the_inputs(name: str) -> None:
    call, inputs = CALLS[name]
    wanted = flat(call(*inputs))
    for layout in LAYOUTS:
        for i in range(len(inputs)):
            given = [layout(value) if j == i else value for j, value in enumerate(inputs)]
            assert all(map(np.array_equal, given, inputs))
            got = flat(call(*given))
            assert len(got) == len(wanted)
            if name.startswith("soft_states"):  # products by BLAS, whose sums depend on the layout
                torch.testing.assert_close(got, wanted)
            else:
                assert all(map(torch.equal, got, wanted)), (layout.__name__, i)


@pytest.mark.parametrize("name", ["trajectories", "compiled_outputs", "Moore", "Mealy", "PrefixTree"])
def test_numbers_that_are_no_integers_are_refused(name: str) -> None:
    call, inputs = CALLS[name]
    for i in range(len(inputs)):
        given = [value.astype(np.float64) + 0.5 if j == i else value for j, value in enumerate(inputs)]
        with pytest.raises((InvalidInput, InvalidWord, ValueError, TypeError)):
            call(*given)


def test_integers_that_do_not_fit_are_refused() -> None:
    far = np.full((1, 1), 1 << 32)
    with pytest.raises(InvalidInput, match=r"symbols lie between .* got 4,294,967,296"):
        PrefixTree().add(far, far * 0)


@pytest.mark.parametrize("make", [lambda: np.zeros((2, 3)), lambda: torch.zeros(2, 3)], ids=["NumPy", "torch"])
def test_address_refuses_what_is_not_in_row_major_order(make: Callable[[], Any]) -> None:
    array = make()
    assert native.address(array) == (array.ctypes.data if isinstance(array, np.ndarray) else array.data_ptr())
    assert native.address(None) is None
    with pytest.raises(InvalidInput, match=r"row-major order without gaps; an array of shape \(3, 2\) lies otherwise"):
        native.address(array.T)
    with pytest.raises(InvalidInput, match="make it contiguous first"):
        native.address(every_second(array))


def test_address_refuses_swapped_bytes() -> None:
    with pytest.raises(InvalidInput, match="row-major order"):
        native.address(swapped_bytes(np.arange(3)))


def test_every_pointer_is_taken_by_address() -> None:
    package = Path(native.__file__).parent
    raw = re.compile(r"\.ctypes\.data\b|\.data_ptr\(\)|_as_parameter_|ctypes\.as_")
    found = {
        f"{path.relative_to(package)}:{line}"
        for path in package.rglob("*.py")
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if raw.search(text)
    }
    assert {place.partition(":")[0] for place in found} == {"native.py", "ops/cpu.py"}
    assert len([place for place in found if place.startswith("ops/cpu.py")]) == 1, "the sizes of heads, cached"
