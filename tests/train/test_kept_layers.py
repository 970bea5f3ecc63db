"""Layers of kept heads: what each reads, the codes that they are, and their file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exactstate._types import MISSING, Ints
from exactstate.automata import dihedral
from exactstate.nn.heads import KeptHead, entropy
from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.train import train
from exactstate.train.config import SearchConfig
from exactstate.train.kept_layers import KeptLayer, KeptLayers, codes_of_layers

TSO3 = get_task("TSO3")
FIRST, HOLDERS = TSO3.registers[0], TSO3.registers[1:]


def head(of_state: Ints, input_of: Ints, inputs: int, words: Ints) -> KeptHead:
    """A head that follows a register, as these words show it; `input_of` (B L) is what stands where."""
    d = int(of_state.max()) + 1
    path = of_state[TSO3.machine.trajectory(words, np.zeros(len(words), np.int64))].astype(np.int64)
    before = np.concatenate([np.full((len(words), 1), of_state[0]), path[:, :-1]], axis=1)
    tables = np.full((inputs, d), MISSING)
    tables[input_of, before] = path
    return KeptHead(tables, np.asarray(of_state, np.int64), int(of_state[0]), tuple(range(d)))


def given() -> KeptLayers:
    """The registers of the task: the first name, and above it the holders."""
    words = TSO3.sample(1_000, 90, np.random.default_rng(1)).inputs.astype(np.int64)
    made = KeptLayers(TSO3.machine.n_symbols)
    inputs = made.reached([words])
    assert inputs.tolist() == list(range(TSO3.machine.n_symbols))
    made.layers.append(KeptLayer(inputs, (head(FIRST.of_state, words, len(inputs) + 1, words),)))
    inputs = made.reached([words])
    read = made.reads(words, made.run(words)[1], inputs)
    made.layers.append(
        KeptLayer(inputs, tuple(head(one.of_state, read, len(inputs) + 1, words) for one in HOLDERS))
    )  # fmt: skip
    return made


def test_a_layer_reads_the_symbol_and_the_joint_index_below_before_it() -> None:
    made, drawn = given(), TSO3.sample(16, 60, np.random.default_rng(2))
    words = drawn.inputs.astype(np.int64)
    before = np.concatenate([drawn.before[:, None], drawn.states[:, :-1]], axis=1)
    pairs = FIRST.of_state[before].astype(np.int64) * TSO3.machine.n_symbols + words
    lowest = KeptLayers(made.symbols, made.layers[:1])
    found = lowest.reads(words, lowest.run(words)[1], made.layers[1].inputs)
    assert np.array_equal(made.layers[1].inputs[found], pairs)
    unseen = lowest.reads(words, lowest.run(words)[1], made.layers[1].inputs[:5])
    assert unseen.max() == 5  # all others are one


def test_the_heads_follow_the_registers_and_tell_all_labels_apart() -> None:
    made, drawn = given(), TSO3.sample(64, 100, np.random.default_rng(3))
    paths, joint = made.run(drawn.inputs.astype(np.int64))
    for register, path in zip((FIRST, *HOLDERS), np.moveaxis(paths, 2, 0), strict=True):
        assert np.array_equal(path[:, 1:], register.of_state[drawn.states])
    assert joint.max() < 4**4
    assert entropy(made.groups(44), np.ones(44, np.int64)) == 0.0


def test_codes_hold_the_lower_heads_late_and_what_is_asked() -> None:
    codes = codes_of_layers(given(), TSO3, np.random.default_rng(4))
    assert codes.heads == ((4, 4, 4), (4, 4, 4))  # the first name, the same a symbol ago, and what is asked
    rows, r = codes.rows, 6
    before, after, answers = rows[:, 2 : 2 + r], rows[:, 2 + r : 2 + 2 * r], rows[:, -1]
    assert np.array_equal(after[:, 1], before[:, 0])
    assert np.array_equal(after[:, 2] > 0, answers != MISSING)


def test_layers_come_back_from_their_file(tmp_path: Path) -> None:
    made, other = given(), KeptLayers(TSO3.machine.n_symbols)
    made.open = 0.5
    made.save(tmp_path / "layers.safetensors", 0)
    other.load(tmp_path / "layers.safetensors")
    words = TSO3.sample(8, 50, np.random.default_rng(5)).inputs.astype(np.int64)
    assert other.open == 0.5
    assert all(np.array_equal(*pair) for pair in zip(made.run(words), other.run(words), strict=True))


@pytest.mark.slow
def test_a_machine_without_a_parallel_decomposition_is_learned_in_two_layers() -> None:
    run = train(Task.of(dihedral(16), name="D16"), recipe="gradient", search=SearchConfig())
    assert run.certified
    assert len(run.extracted.layers) == 2
    assert "float32" in run.certificate().proved
