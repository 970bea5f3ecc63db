"""Recipes by name: the numbers they stand for, and the names that are refused."""

from __future__ import annotations

import pytest

from exactstate.baselines.cells import CELLS
from exactstate.errors import InvalidConfig, UnknownName
from exactstate.tasks import task
from exactstate.train import EndToEndConfig, TrainConfig, configure
from exactstate.train.fit import PROCEDURES, end_to_end, procedure_for
from exactstate.train.recipes import RECIPES, default_recipe, names_for


def test_every_recipe_is_described_and_returns_a_config_of_its_name() -> None:
    for name, recipe in RECIPES.items():
        assert recipe.name == name
        assert recipe.summary.endswith(".")
        for cell in recipe.cells:
            config = configure("S3", cell=cell, recipe=name, seed=7)
            assert (config.recipe, config.cell, config.task, config.seed) == (name, cell, "S3", 7)
            assert TrainConfig.from_json(config.to_json()) == config
            assert procedure_for(config) is (PROCEDURES[name] if cell == "nfsm" else end_to_end)


def test_every_cell_has_a_default_recipe() -> None:
    for cell in CELLS:
        assert default_recipe(cell, task("S3")) in names_for(cell)
        assert configure("S3", cell=cell).recipe == default_recipe(cell, task("S3"))


def test_configure_paper_has_the_numbers_of_the_paper() -> None:
    wanted = TrainConfig(task="S4", recipe="paper", heads=(4, 3, 2), restarts=0)
    assert configure("S4", recipe="paper") == wanted
    assert configure("A5", recipe="paper").heads == (5, 12)
    assert configure("A5", recipe="paper", heads=(60,)).heads == (60,)
    assert configure("Z5", recipe="paper").heads is None
    assert configure("M11", recipe="paper").end_to_end.check_words == 128
    config = configure("S4", cell="mamba", recipe="paper")
    assert (config.layers, config.width, config.channels, config.states, config.dropout) == (4, 128, 256, 16, 0.1)
    assert config.end_to_end == EndToEndConfig(stop_accuracy=0.99)
    stories = configure("TSO3", cell="pdssm", recipe="paper").end_to_end
    assert (stories.batch, stories.length) == (64, 256)
    assert configure("M11", cell="mamba", recipe="paper").end_to_end.check_words == 128


def test_configure_cpu_grows_the_length_of_words_without_a_question() -> None:
    assert configure("S3", cell="mamba").end_to_end.grow_length
    assert not configure("TSO3", cell="mamba").end_to_end.grow_length
    assert configure("S3", cell="mamba", recipe="cpu-long").end_to_end.steps == 4_000
    short = configure("S3", cell="mamba", recipe="cpu-short")
    assert (short.layers, short.width, short.end_to_end.length) == (4, 64, 16)


def test_configure_refuses_unknown_names() -> None:
    with pytest.raises(UnknownName, match=r"unknown cell 'mambo'\. Did you mean 'mamba'"):
        configure("S3", cell="mambo")
    with pytest.raises(UnknownName, match=r"unknown recipe 'induce'\. Known: paper, cpu, cpu-long, cpu-short"):
        configure("S3", cell="mamba", recipe="induce")
    with pytest.raises(UnknownName, match=r"unknown recipe 'cpu'\. Known: gradient, straight_through, induce, distill"):
        configure("S3", recipe="cpu")
    with pytest.raises(InvalidConfig, match="no such setting"):
        configure("S3", widht=3)
    with pytest.raises(InvalidConfig, match="heads belong to the NFSM; mamba has none"):
        configure("S3", cell="mamba", heads=(3, 2))
    with pytest.raises(InvalidConfig, match="mamba is trained on states"):
        configure("S3", cell="mamba", supervise="outputs")


def test_configure_takes_a_task_of_your_own() -> None:
    assert configure("mine", task=task("TSO3"), cell="mamba", recipe="paper").end_to_end.length == 256
