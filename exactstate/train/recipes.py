"""The recipes by name: each is a function from task, cell and seed to a `TrainConfig`. Nothing here imports torch.

configure("S4")                                  # the default recipe of an NFSM
configure("S4", recipe="paper", heads=(4, 3, 2))
configure("S4", cell="mamba", recipe="cpu-long", seed=43)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from exactstate.automata import Mealy
from exactstate.baselines.cells import BASELINES, CELLS
from exactstate.errors import InvalidConfig, unknown
from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.tasks.access_words import AccessWords
from exactstate.train.config import EMBEDDED_FROM, EndToEndConfig, GradientConfig, SearchConfig, TrainConfig

MANY_STATES = 65
"""With so many states few heads of a wide layer find something, and the others are drawn anew."""
RENEWED = GradientConfig(renew_every=300, remember=2.0, mask_rate=0.0)
PAPER_HEADS: dict[str, tuple[int, ...]] = {
    "Z2": (2,), "Z16": (16,), "S3": (3, 2), "S4": (4, 3, 2), "A5": (5, 12), "M11": (11, 11, 11, 11), "DFF5": (3,),
    "FF": (3,),
}  # fmt: skip
"""The heads of the paper, for its algebraic tasks."""


@dataclass(frozen=True)
class Recipe:
    """A named way of training."""

    name: str
    summary: str
    """What it does, in one sentence."""
    cells: tuple[str, ...]
    """The cells that it trains."""
    make: Callable[[str, Task, str, int], TrainConfig]
    """(name in the configuration, task, cell, seed) -> the configuration."""


def gradient(name: str, task: Task, cell: str, seed: int) -> TrainConfig:
    """By gradient from words and labels: every head alone, kept one by one; they are the layer of the network.

    What one layer leaves open the next learns, which reads the symbol and the kept heads. Outputs and small machine
    files have one large head alone; with thousands of states, heads begin with label embeddings. Of small tasks,
    attempts that follow those of heads alone are trained straight through.
    """
    if task.layers is not None:
        search = SearchConfig(attempts=3, length=85)
        return TrainConfig(task=name, cell=cell, recipe="gradient", seed=seed, restarts=2, search=search)
    config = replace(straight_through(name, task, cell, seed), recipe="gradient")
    if isinstance(task.sampler, AccessWords) or task.machine.n_states > EMBEDDED_FROM:
        search = SearchConfig(steps=3_000, attempts=5 if isinstance(task.sampler, AccessWords) else 10)
        return replace(config, search=search, restarts=search.attempts - 1)
    return replace(config, search=SearchConfig(), restarts=config.restarts + SearchConfig().attempts)


def straight_through(name: str, task: Task, cell: str, seed: int) -> TrainConfig:
    """End to end by gradient with many heads and one read-out; then prune them, certify, and compress."""
    if task.layers is not None:
        raise InvalidConfig(f"{task.name} takes two layers, and 'straight_through' trains one; use --recipe gradient.")
    config = TrainConfig(task=name, cell=cell, recipe="straight_through", seed=seed, width=64, dropout=0.0, restarts=2)
    if isinstance(task.sampler, AccessWords):
        return replace(config, restarts=4)
    if task.machine.n_states >= MANY_STATES:
        return replace(config, restarts=9, gradient=RENEWED)
    return config


def induce(name: str, task: Task, cell: str, seed: int) -> TrainConfig:
    """Count the labeled transitions of sampled words, factor them into heads, realize these."""
    return TrainConfig(task=name, cell=cell, recipe="induce", seed=seed)


def distill(name: str, task: Task, cell: str, seed: int) -> TrainConfig:
    """Factor the target machine, or take the registers that the task names; realize these."""
    return TrainConfig(task=name, cell=cell, recipe="distill", seed=seed)


def paper(name: str, task: Task, cell: str, seed: int) -> TrainConfig:
    """End to end with the paper's numbers and heads; a baseline has four layers of 256 channels in a model of 128."""
    check_words = 128 if name == "M11" else 512
    if cell == "nfsm":
        return TrainConfig(
            task=name, cell=cell, recipe="paper", seed=seed, heads=PAPER_HEADS.get(name), restarts=0,
            end_to_end=EndToEndConfig(check_words=check_words),
        )  # fmt: skip
    asks = task.question is not None
    return TrainConfig(
        task=name, cell=cell, recipe="paper", seed=seed, layers=4, width=128, channels=256, states=16, restarts=0,
        stop="checks",
        end_to_end=EndToEndConfig(
            batch=64 if asks else 256, length=256 if asks else 64, check_words=check_words, stop_accuracy=0.99,
        ),
    )  # fmt: skip


def cpu(name: str, task: Task, cell: str, seed: int) -> TrainConfig:
    """A baseline of two layers of width 32 without dropout, 1000 steps at most: about a minute of one core."""
    return TrainConfig(
        task=name, cell=cell, recipe="cpu", seed=seed, layers=2, width=32, channels=32, states=8, dropout=0.0,
        restarts=0, stop="checks",
        end_to_end=EndToEndConfig(
            batch=32, length=64, lr=5e-3, final_lr=5e-4, steps=1_000, check_words=128, stop_accuracy=0.99,
            stop_checks=3, grow_length=task.question is None,
        ),
    )  # fmt: skip


def cpu_long(name: str, task: Task, cell: str, seed: int) -> TrainConfig:
    """As `cpu`, with four times the steps."""
    config = cpu(name, task, cell, seed)
    return replace(config, recipe="cpu-long", end_to_end=replace(config.end_to_end, steps=4_000))


def cpu_short(name: str, task: Task, cell: str, seed: int) -> TrainConfig:
    """As `cpu`, with four layers of width 64 on words of 16 symbols: for S4, which none learns at 64 in minutes."""
    config = cpu(name, task, cell, seed)
    end_to_end = replace(config.end_to_end, length=16, lr=3e-3, final_lr=3e-4, steps=2_000)
    return replace(config, recipe="cpu-short", layers=4, width=64, end_to_end=end_to_end)


def _recipe(make: Callable[[str, Task, str, int], TrainConfig], cells: tuple[str, ...]) -> Recipe:
    name = make.__name__ if make is straight_through else make.__name__.replace("_", "-")
    return Recipe(name, (make.__doc__ or "").strip(), cells, make)


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        _recipe(gradient, ("nfsm",)),
        _recipe(straight_through, ("nfsm",)),
        _recipe(induce, ("nfsm",)),
        _recipe(distill, ("nfsm",)),
        _recipe(paper, tuple(CELLS)),
        _recipe(cpu, BASELINES),
        _recipe(cpu_long, BASELINES),
        _recipe(cpu_short, BASELINES),
    )
}


def names_for(cell: str) -> tuple[str, ...]:
    """The recipes that train a cell."""
    return tuple(recipe.name for recipe in RECIPES.values() if cell in recipe.cells)


def default_recipe(cell: str, task: Task) -> str:
    """The recipe of a cell when none is named; a task with registers is given them, which teaches text in any order."""
    if cell != "nfsm":
        return "cpu"
    return "gradient" if task.layers is None else "distill"


def default_supervision(task: Task, cell: str, recipe: str) -> str:
    """The labels when none are named: the outputs of a Mealy machine, which its states do not have; else states."""
    mealy = isinstance(task.machine, Mealy) and task.question is None and task.layers is None
    return "outputs" if mealy and cell == "nfsm" and recipe != "distill" else "states"


def configure(
    name: str, *, task: Task | None = None, cell: str = "nfsm", recipe: str | None = None, seed: int = 42,
    **settings: Any,
) -> TrainConfig:  # fmt: skip
    """The configuration that a recipe returns, with some of its settings replaced.

    - `name`: the task's name, or the path of a machine file.
    - `task`: the task itself, where its name is not enough to find it.
    - `recipe`: one of RECIPES; `default_recipe` when not given.
    - `settings`: fields of `TrainConfig`, such as `heads` or `width`; `supervise=None` is `default_supervision`.
    """
    if cell not in CELLS:
        raise unknown("cell", cell, CELLS)
    if recipe is not None and recipe not in names_for(cell):
        raise unknown("recipe", recipe, names_for(cell))
    task = task or get_task(name)
    recipe = default_recipe(cell, task) if recipe is None else recipe
    config = RECIPES[recipe].make(name, task, cell, seed)
    if settings.get("supervise", "") is None:
        settings["supervise"] = default_supervision(task, cell, recipe)
    try:
        return replace(config, **settings)
    except TypeError as error:
        raise InvalidConfig(f"no such setting ({error}).") from None
