"""`Extracted`: machines built by hand, read back, named and turned into standalone machines."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from exactstate.automata import cyclic, flip_flop, mathieu11, minimize, permutation, symmetric
from exactstate.errors import InvalidInput
from exactstate.extract import extract
from exactstate.runtime import Heads, Machine
from exactstate.tasks.free_order_stories import NOT_UNDERSTOOD
from tests.extract.building import Cascade, realise, side_by_side, spelling
from tests.extract.groups import S3, S4, by_points, images_of, is_odd
from tests.extract.stories import stories


def test_extracted_s3_by_a_point_and_the_sign(generator: torch.Generator) -> None:
    s3 = symmetric(3)
    images = images_of(s3, S3)
    state = {(image[0], is_odd(image)): q for q, image in enumerate(images)}
    heads = [np.array(S3), np.array([[1, 0], [1, 0]])]
    model = realise(side_by_side(heads, lambda seen: state[seen[1]], labels=6), width=24)
    found = extract(model, symbols=s3.symbols, labels=s3.states)
    assert [table.tolist() for table in found.head_tables] == [table.tolist() for table in heads]
    assert len(found.configurations) == found.joint_indices == 6
    assert found.named == s3
    assert found.minimized.n_states == 6
    assert found.weakest.margin == pytest.approx(4, rel=1e-5)
    assert found.describe().splitlines() == [
        "2 symbols, 6 joint indices, 6 of them reached",
        "head 0 (3 indices) tracks the image of point 0",
        "head 1 (2 indices) tracks the sign",
    ]
    words = torch.randint(0, 2, (5, 200), generator=generator)
    with torch.no_grad():
        said = model(words)[0].argmax(-1).numpy()
    assert np.array_equal(said, s3.trajectory(words.numpy()))


def test_extracted_s4_runs_as_heads() -> None:
    s4 = symmetric(4)
    tables, states, start = by_points(s4, S4, (0, 1, 3))
    found = extract(spelling(tables, states, start), symbols=s4.symbols, labels=s4.states)
    assert (found.joint_indices, len(found.reached), found.start) == (64, 24, (0, 1, 3))
    assert found.named == s4
    assert "head 2 (4 indices) tracks the image of point 3" in found.describe()
    # the heads run as heads, without the network
    machine = Machine.of(found.machine, heads=Heads(found.head_tables, found.start))
    word = np.random.default_rng(1).integers(0, 3, 1000)
    assert np.array_equal(machine.output_ids(word), s4.trajectory(word))


@pytest.mark.slow
def test_extracted_m11() -> None:
    m11 = mathieu11()
    a, b = permutation([range(11)], 11), permutation([(2, 6, 10, 7), (3, 9, 4, 5)], 11)
    letters = [a, b, np.argsort(a).tolist(), np.argsort(b).tolist()]
    tables, states, start = by_points(m11, letters, (0, 1, 2, 3))
    found = extract(spelling(tables, states, start), symbols=m11.symbols, labels=m11.states)
    assert (found.joint_indices, len(found.reached)) == (14641, 7920)
    assert found.named == m11
    assert "head 3 (11 indices) tracks the image of point 3" in found.describe()


def test_describe_flip_flop_as_the_last_reset() -> None:
    ff = flip_flop()
    model = realise(side_by_side([ff.tables], lambda seen: seen[1][0], labels=3), width=16)
    found = extract(model, symbols=ff.symbols, labels=ff.states)
    assert found.named == ff
    assert "head 0 (3 indices) tracks the last reset, which of reset, set was read last" in found.describe()


def test_describe_residues() -> None:
    z6 = cyclic(6)
    heads = [np.add.outer(np.arange(6), np.arange(k)) % k for k in (2, 3)]
    crt = {(n % 2, n % 3): n for n in range(6)}
    model = realise(side_by_side(heads, lambda seen: crt[seen[1]], labels=6), width=48)
    found = extract(model, symbols=z6.symbols, labels=z6.states)
    assert found.named == z6
    assert found.describe().splitlines()[1:] == [
        "head 0 (2 indices) tracks the parity",
        "head 1 (3 indices) tracks the residue mod 3",
    ]


def test_describe_counts_from_what_symbols_do() -> None:
    heads = [
        np.array([[1, 0], [0, 1], [1, 0]]),
        np.array([[1, 2, 3, 0], [0, 1, 2, 3], [3, 0, 1, 2]]),
        np.array([[0, 1, 2]] * 3),
        np.array([[1, 1, 0], [2, 0, 1], [0, 1, 2]]),
    ]
    cascade = side_by_side(heads, lambda seen: seen[1][1] * 3 + seen[1][3], labels=12)
    assert cascade.read(symbols=("a", "b", "c")).describe().splitlines()[1:] == [
        "head 0 (2 indices) tracks the parity of the number of a, c",
        "head 1 (4 indices) tracks the number mod 4 of a, c counted 3 times",
        "head 2 (3 indices, 1 of them reached) never moves",
        "head 3 (3 indices) tracks no known invariant",
    ]


def test_describe_given_registers() -> None:
    z6 = cyclic(6)
    cascade = side_by_side([z6.tables, z6.tables % 2], lambda seen: seen[1][0], labels=6)
    low = [0, 0, 0, 1, 1, 1]
    found = cascade.read()
    assert "head 0 (6 indices) tracks the residue mod 6" in found.describe({"low half": low})
    assert "head 0 (6 indices) tracks the shift" in found.describe({"the shift": [3, 4, 5, 0, 1, 2]})
    with pytest.raises(InvalidInput, match="register 'x' has 2 values; wanted one for each of the 6 labels"):
        found.describe({"x": [0, 1]})
    odd = Cascade(symbols=2, heads=((4,),), labels=2, rule=lambda layer, window: [
        [[1, 3, 0, 2], [0, 2, 1, 3]][window[-1][0]]], say=lambda seen: seen[1][0] % 2)  # fmt: skip
    assert "head 0 (4 indices) determines the low bit" in odd.read().describe({"the low bit": [0, 1]})


def test_named_with_a_start_that_is_never_returned_to() -> None:
    """Two joint indices stand for the identity of Z3: the one to begin with is left for ever."""
    table = np.array([[1, 1, 2, 3], [2, 2, 3, 1], [3, 3, 1, 2]])
    found = side_by_side([table], lambda seen: seen[1][0] - 1, labels=3).read()
    assert len(found.configurations) == 4
    assert found.named == cyclic(3)
    last = np.array([[1, 1, 1], [2, 2, 2]])
    found = side_by_side([last], lambda seen: seen[1][0] - 1, labels=2).read()
    assert found.named.states == ("0", "1")  # what the start does is what any label does
    assert found.minimized.n_states == 1


def test_named_is_none_if_labels_do_not_determine_what_follows() -> None:
    found = side_by_side([cyclic(4).tables], lambda seen: seen[1][0] // 2, labels=2).read()
    assert found.named is None
    two_faced = side_by_side([np.array([[0], [0]])], lambda seen: seen[0], labels=2).read()
    assert two_faced.named is None
    assert minimize(two_faced.machine).n_states == 1


def test_answer_machine_answers_at_the_question_mark_only() -> None:
    told, cascade = stories(2)
    found = cascade.read(symbols=told.machine.symbols, grammar=told.grammar)
    machine = found.answer_machine(["?"], forbidden=NOT_UNDERSTOOD)
    assert machine.outputs == ("", "0", "1", NOT_UNDERSTOOD)
    text = "alice has the key . bob has the ring . . bob swaps with alice . who has the key ?"
    said = [machine.outputs[n] for n in machine.output_ids(machine.encode(text.split()))]
    assert said == [""] * 20 + ["1"]
    wrong = [machine.outputs[n] for n in machine.output_ids(machine.encode(["alice", "has", "has", "the", "key", "."]))]
    assert wrong == ["", "", NOT_UNDERSTOOD, "", "", ""]


def test_answer_machine_needs_an_answer_head() -> None:
    found = side_by_side([np.array([[0, 1], [1, 0]])], lambda seen: seen[1][0], labels=2).read()
    with pytest.raises(InvalidInput, match="this model has no answer head"):
        found.answer_machine(["0"])
