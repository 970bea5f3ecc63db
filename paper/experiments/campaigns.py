"""The experiments behind the rows in `results/`: for each a function that yields jobs, and an entry in `CAMPAIGNS`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from exactstate.errors import BudgetExceeded, NotLearned, unknown
from exactstate.evaluate.sweep_run import sweep_run
from exactstate.records import Row
from exactstate.tasks import task as get_task
from exactstate.train import EndToEndConfig, Run, RunDir, TrainConfig, configure, train
from exactstate.train.config import wide_heads
from exactstate.train.recipes import PAPER_HEADS
from exactstate.train.straight_through import compress
from exactstate.train.trainer import Trainer
from exactstate.train.verify import answers_in_any_order
from paper.experiments import (
    comparison,
    error_control,
    geometry,
    story_learning,
    story_stream,
    supervision,
    text,
    text_machines,
)
from paper.experiments.monitors import MONITORS
from paper.experiments.protocol_libraries import LIBRARIES
from paper.experiments.protocols import PROTOCOLS
from paper.experiments.redundancy import REDUNDANCY
from paper.experiments.regions import REGIONS
from paper.experiments.runner import SEEDS, Campaign, Job, Options
from paper.experiments.text_languages import LANGUAGES
from paper.theory import counting

Heads = tuple[int, ...] | None
ALGEBRAIC = ("Z2", "Z16", "S3", "S4", "A5", "M11", "DFF5", "FF")
SINGLE_HEAD: list[tuple[str, Heads]] = [("S3", (6,)), ("S4", (24,)), ("A5", (60,))]
"""One head with an index for every state."""
MORE_HEADS: list[tuple[str, Heads]] = [
    ("Z2", (2, 2, 2)), ("S3", (3, 3, 3, 2, 2)), ("S4", (24, 24, 24)), ("DFF5", (3, 3, 3)), ("FF", (3, 3, 3)),
]  # fmt: skip
"""More heads than a task needs."""


HEAD_KINDS = ("paper", "wide", "all")
"""Which runs of `paper_full` there are: with the paper's heads, with wide ones, or both."""


def certificate_path(options: Options, task: str, seed: int) -> Path | None:
    """Where the certificate of the first seed is kept; None for the others."""
    return options.rows.parent / "certificates" / f"{task}-{seed}.json" if seed == SEEDS[0] else None


def certificate_entries(run: Run, file: Path | None = None) -> Row:
    """The entries of a row about the certificate of a run, which is kept in the file."""
    if not run.certified:
        return {"certificate": None, "proved": []}
    certificate = run.certificate()
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        certificate.write(file)
    return {"certificate": certificate.sha256, "proved": list(certificate.proved)}


def train_row(config: TrainConfig, key: Row, certificate_file: Path | None = None, *, last_check: bool = False) -> Row:
    """Train an NFSM and certify it; its row."""
    started = time.process_time()
    run = train(config)
    cpu_seconds, ended = time.process_time() - started, time.perf_counter()
    proof = certificate_entries(run, certificate_file)
    return {
        **key, "heads": list(run.heads), "certified": run.certified, "steps": run.steps, "restarts": run.restarts,
        "seconds": round(run.seconds, 3), "cpu_seconds": round(cpu_seconds, 3),
        "proving_seconds": round(time.perf_counter() - ended, 3), "threads": torch.get_num_threads(),
        "joint_indices": run.extracted.joint_indices, "reached": len(run.extracted.reached),
        "states": run.task.machine.n_states, "weights": run.extracted.weights, **proof,
        **({"last_check": run.history[-1]} if last_check else {}),
    }  # fmt: skip


def learning_row(config: TrainConfig, key: Row, certificate_file: Path | None = None) -> Row:
    """Learn a task by gradient and certify it, in CPU seconds of one core; then compress it, if its layer was wide."""
    only_learn = replace(config, gradient=replace(config.gradient, compress=False))
    started = time.process_time()
    try:
        run = train(only_learn)
    except (NotLearned, BudgetExceeded) as error:
        return {
            **key,
            "certified": False,
            "verdict": str(error),
            "cpu_seconds": round(time.process_time() - started, 2),
        }
    proof = certificate_entries(run, certificate_file)
    cpu_seconds = time.process_time() - started
    row = {
        **key, "certified": run.certified, "verdict": run.verdict.explain(), "cpu_seconds": round(cpu_seconds, 2),
        "steps": run.steps, "restarts": run.restarts, "repairs": run.repairs,
        "tables": run.tables, "learned_heads": run.stages["learned"]["heads"],
        "heads": list(run.heads), "joint_indices": run.extracted.joint_indices, "reached": len(run.extracted.reached),
        "states": run.task.machine.n_states, "column_margin": round(float(run.extracted.weakest.margin), 4),
        "label_margin": round(float(run.extracted.label_margins.min()), 4), "weights": run.extracted.weights,
        **proof, "threads": torch.get_num_threads(),
    }  # fmt: skip
    if not run.certified or run.tables == "every head alone":  # whose heads are not larger than they need to be
        return row
    started = time.process_time()
    attempt = config.with_attempt_seed(run.restarts)
    small = compress(attempt, run.task, run.extracted, Trainer())
    heads = [d for layer in small.extracted.heads for d in layer]
    compressing = time.process_time() - started
    return {
        **row, "compressed_heads": heads, "compressed_certified": bool(small.verdict),
        "compressing_seconds": round(compressing, 2),
    }  # fmt: skip


def learning_jobs(options: Options) -> Iterator[Job]:
    """Seed by seed within a task, the quick tasks first; with `steps`, one attempt of at most so many steps."""
    budget = int(options.settings["steps"])
    for name in options.tasks:
        for seed in options.seeds:
            key: Row = {"task": name, "recipe": "gradient", "seed": seed}
            config = configure(name, recipe="gradient", seed=seed)
            if budget:
                key["budget"] = budget
                search = None if config.search is None else replace(config.search, steps=budget)
                config = replace(config, restarts=0, search=search, gradient=replace(config.gradient, steps=budget))
            kept = certificate_path(options, name, seed)
            file = None if kept is None else kept.parent / "gradient" / kept.name
            yield Job(key, partial(learning_row, config, key, file))


def training_jobs(options: Options) -> Iterator[Job]:
    """Heads chosen by the library, then those of the paper, then one head for all states."""
    chosen: list[tuple[str, Heads]] = [(name, None) for name in ALGEBRAIC]
    for name, heads in [*chosen, *PAPER_HEADS.items(), *SINGLE_HEAD]:
        for seed in options.seeds if name in options.tasks else ():
            key: Row = {"task": name, "recipe": options.recipe, "seed": seed, "heads_given": heads and list(heads)}
            config = configure(name, recipe=options.recipe, seed=seed, heads=heads)
            kept = certificate_path(options, name, seed) if heads is None else None
            yield Job(key, partial(train_row, config, key, kept))


def paper_recipe_jobs(options: Options) -> Iterator[Job]:
    """The first steps of the paper's 100,000, in one attempt or divided among several."""
    budget, attempts, masks = (int(options.settings[name]) for name in ("budget", "attempts", "masks"))
    for name, heads in MORE_HEADS if options.settings["more_heads"] else PAPER_HEADS.items():
        for seed in options.seeds if name in options.tasks else ():
            config = configure(name, recipe="paper", seed=seed, heads=heads)
            horizon = config.end_to_end.steps
            phase = replace(config.end_to_end, steps=budget // attempts, horizon=horizon, masks=masks)
            config = replace(config, restarts=attempts - 1, end_to_end=phase)
            key: Row = {
                "task": name, "recipe": "paper", "seed": seed, "heads_given": heads and list(heads), "budget": budget,
                "attempts": attempts, "masks": masks,
            }  # fmt: skip
            yield Job(key, partial(train_row, config, {**key, "horizon": horizon}, last_check=True))


def paper_full_row(config: TrainConfig, key: Row, folder: Path, seconds: float | None, until: int | None) -> Row:
    """Train by the paper's recipe until it is certified or stops, pausing after so many seconds or at this step; how
    far it got."""
    run = train(config, out=folder, max_seconds=seconds, until=until)
    return {
        **key, "finished": run.finished, "certified": run.certified, "steps": run.steps,
        "seconds": round(run.seconds, 1), "best_accuracy": run.accuracy, "first_error": round(run.first_error, 2),
        **certificate_entries(run), "threads": torch.get_num_threads(),
    }  # fmt: skip


def paper_full_jobs(options: Options) -> Iterator[Job]:
    """All 100,000 steps of the paper, with its heads and with wide ones.

    A run is paused after `minutes`, or at the step `until` where that is given; repeated with more, it resumes in its
    folder. With `heads` only those of one kind, `paper` or `wide`.
    """
    until = int(options.settings["until"]) or None
    seconds = 60 * float(options.settings["minutes"]) if until is None else None
    if options.settings["heads"] not in HEAD_KINDS:
        raise unknown("kind of heads", str(options.settings["heads"]), HEAD_KINDS)
    for seed in options.seeds:
        for name in options.tasks:
            for kind, heads in (("paper", PAPER_HEADS[name]), ("wide", wide_heads(len(get_task(name).labels)))):
                if options.settings["heads"] not in (kind, "all"):
                    continue
                key: Row = {"task": name, "recipe": "paper", "seed": seed, "heads_given": list(heads or ())}
                config = configure(name, recipe="paper", seed=seed, heads=heads, restarts=0)
                folder = options.runs / f"{name}-{seed}-paper-{kind}"
                yield Job(key, partial(paper_full_row, config, key, folder, seconds, until))


def comparison_jobs(options: Options) -> Iterator[Job]:
    """Cells in the same plain model; large groups have a longer budget."""
    for seed in options.seeds:
        for name in options.tasks:
            large = len(get_task(name).labels) > 24
            seconds = float(options.settings["seconds_large" if large else "seconds"])
            for cell in options.cells:
                key: Row = {"task": name, "cell": cell, "seed": seed, "budget_seconds": seconds}
                yield Job(key, partial(comparison.comparison_row, get_task(name), cell, seed, seconds))


def supervision_jobs(options: Options) -> Iterator[Job]:
    """Every machine with every kind of supervision; the labels of a Mealy machine are always its outputs."""
    for seed in options.seeds:
        for name in options.tasks:
            for kind in supervision.KINDS:
                if kind == "every":
                    continue  # the campaign `learning` has states at every symbol
                key: Row = {"task": name, "kind": kind, "seed": seed}
                steps = int(options.settings["steps"])
                yield Job(key, partial(supervision.supervision_row, name, kind, seed, steps))


def text_jobs(options: Options) -> Iterator[Job]:
    seconds = float(options.settings["seconds"])
    for seed in options.seeds:
        for cell in options.cells:
            for language in options.tasks:
                key: Row = {"language": language, "cell": cell, "seed": seed, "budget_seconds": seconds}
                yield Job(key, partial(text.text_row, language, cell, seed, seconds))


def text_machine_jobs(options: Options) -> Iterator[Job]:
    seconds = float(options.settings["seconds"])
    for seed in options.seeds:
        for language in options.tasks:
            key: Row = {"language": language, "seed": seed, "budget_seconds": seconds}
            yield Job(key, partial(text_machines.certificate_row, language, seed, seconds))


def story_learning_jobs(options: Options) -> Iterator[Job]:
    """From states and answers first, then from answers alone."""
    form, seconds = options.settings["form"], float(options.settings["seconds"])
    if form not in story_learning.FORMS:
        raise unknown("form", str(form), story_learning.FORMS)
    for kind in story_learning.SUPERVISION:
        for name in options.tasks:
            for seed in options.seeds:
                key: Row = {"task": name, "supervision": kind, "seed": seed}
                if form == "cascade":
                    yield Job({**key, "form": form}, partial(story_learning.cascade_row, name, kind, seed))
                else:
                    compute = partial(story_learning.story_learning_row, name, kind, seed, seconds)
                    yield Job({**key, "budget_seconds": seconds}, compute)


def baseline_row(config: TrainConfig, folder: Path, until: int | None = None) -> Row:
    """Train a baseline in its folder, up to a step if one is given; its row."""
    run = train(config, out=folder, until=until)
    return {**run.row(), "threads": torch.get_num_threads(), "folder": folder.name}


def baseline_jobs(options: Options) -> Iterator[Job]:
    """All of the first seed, then all of the second; runs stay in their folders for sweeps."""
    until = int(options.settings["until"]) or None
    for seed in options.seeds:
        for name in options.tasks:
            for cell in options.cells:
                config = configure(name, cell=cell, recipe=options.recipe, seed=seed)
                key: Row = {"task": name, "cell": cell, "recipe": options.recipe, "seed": seed}
                folder = options.runs / f"{name}-{seed}-{cell}-{options.recipe}"
                yield Job(key, partial(baseline_row, config, folder, until))


def sweep_jobs(options: Options) -> Iterator[Job]:
    """A length sweep of every finished run in the folder of runs."""
    batch = int(options.settings["batch"])
    for run in RunDir.find(options.runs, str(options.settings["only"])):
        if run.finished:
            nfsm = run.config().get("cell", "nfsm") == "nfsm"
            max_length = int(options.settings["max_length" if nfsm else "baselines_max_length"])
            key: Row = {"folder": run.path.name, "batch": batch, "max_length": max_length}
            yield Job(key, partial(sweep_row, run.path, max_length, batch))


def sweep_row(run: Path, max_length: int, batch: int) -> Row:
    return {**sweep_run(run, max_length=max_length, batch=batch)[1], "folder": run.name}


def error_control_jobs(options: Options) -> Iterator[Job]:
    """Every finished run in the folder of runs whose labels are states."""
    words, max_length = (int(options.settings[name]) for name in ("words", "max_length"))
    for run in RunDir.find(options.runs, str(options.settings["only"])):
        if run.finished and run.task().question is None:
            key: Row = {"folder": run.path.name, "words": words, "max_length": max_length}
            yield Job(key, partial(error_control.error_control_row, run.path, words, max_length))


def counting_jobs(options: Options) -> Iterator[Job]:
    for kind, compute in counting.KINDS.items():
        yield Job({"kind": kind}, compute)


def story_row(name: str, seed: int, folder: Path, certificate_file: Path | None, *, alone: bool) -> Row:
    """Train a stack on Tracking Shuffled Objects; its row, with the interpretation of every head."""
    started = time.process_time()
    run = train(name, seed=seed, out=folder)
    cpu_seconds = round(time.process_time() - started, 1)
    return {**stack_row(run, certificate_file), "cpu_seconds": cpu_seconds, "alone": alone}


def stack_row(run: Run, certificate_file: Path | None = None) -> Row:
    """The row of a trained stack."""
    answering, configurations, wrong = answers_in_any_order(run.model, run.extracted)
    registers = {register.name: register.of_state for register in run.task.registers}
    return {
        "task": run.task.name, "recipe": run.config.recipe, "seed": run.config.seed,
        "layers": [list(layer) for layer in run.extracted.heads], "certified": run.certified,
        "verdict": run.verdict.explain(), "steps": run.steps, "restarts": run.restarts,
        "seconds": round(run.seconds, 1), "threads": torch.get_num_threads(),
        "joint_indices": run.extracted.joint_indices, "reached": len(run.extracted.reached),
        "configurations": run.verdict.configurations, "states": run.verdict.task_states,
        "weakest_margin": run.extracted.weakest.margin, "weights": run.extracted.weights,
        **certificate_entries(run, certificate_file),
        "right_in_any_order": answering is not None and wrong is None, "configurations_in_any_order": configurations,
        "heads": run.extracted.describe(registers).splitlines()[1:],
    }  # fmt: skip


def story_jobs(options: Options) -> Iterator[Job]:
    for name in options.tasks:
        for seed in options.seeds:
            key: Row = {"task": name, "seed": seed, "recipe": "distill"}
            folder, kept = options.runs / f"{name}-{seed}", certificate_path(options, name, seed)
            alone = bool(options.settings["alone"])
            yield Job(key, partial(story_row, name, seed, folder, kept, alone=alone))


def free_story_row(name: str, seed: int, *, seconds: float, length: int) -> Row:
    """Train a stack by the paper's recipe until it is certified or the time is up; how far it got."""
    phase = EndToEndConfig(batch=64, length=length, check_words=128)
    run = train(configure(name, recipe="paper", seed=seed, restarts=0, end_to_end=phase), max_seconds=seconds)
    return {
        "task": run.task.name, "recipe": "paper", "seed": seed,
        "layers": [list(heads) for heads in run.task.layers or ()], "certified": run.certified, "steps": run.steps,
        "seconds": round(run.seconds, 1), "budget_seconds": seconds, "restarts": 0, "length": length,
        "loss": run.last_state["loss"], "best_accuracy": run.accuracy, "first_error": run.first_error,
        "threads": torch.get_num_threads(),
    }  # fmt: skip


def free_story_jobs(options: Options) -> Iterator[Job]:
    seconds, length = 60 * float(options.settings["minutes"]), int(options.settings["length"])
    for name in options.tasks:
        for seed in options.seeds:
            key: Row = {"task": name, "seed": seed, "recipe": "paper", "length": length, "budget_seconds": seconds}
            yield Job(key, partial(free_story_row, name, seed, seconds=seconds, length=length))


def story_stream_jobs(options: Options) -> Iterator[Job]:
    run, story = Path(str(options.settings["run"])), int(options.settings["story"])
    key: Row = {"kind": "story", "run": run.name, "story": story}
    yield Job(key, partial(story_stream.stream_of_run, run, story))


def geometry_jobs(options: Options) -> Iterator[Job]:
    for seed in options.seeds:
        for cell in options.cells:
            folder = options.runs / f"{geometry.TASK}-{seed}-{cell}-geometry"
            yield Job({"kind": "run", "model": cell, "seed": seed}, partial(geometry.geometry_rows, cell, seed, folder))


CAMPAIGNS: dict[str, Campaign] = {campaign.name: campaign for campaign in (
    Campaign(
        name="training", file="training.jsonl", jobs=training_jobs, tasks=ALGEBRAIC, recipe="induce",
        summary="Train the NFSM on the algebraic tasks, with chosen heads, the paper's heads and a single head.",
    ),
    Campaign(
        name="learning", file="learning.jsonl", jobs=learning_jobs,
        tasks=("Z2", "S3", "DFF5", "FF", "Z5", "S4", "A5", "Z16", "S5"), settings={"steps": 0},
        summary="Learn the algebraic tasks by gradient, prune, certify and compress.",
    ),
    Campaign(
        name="paper_recipe", file="paper_recipe.jsonl", jobs=paper_recipe_jobs, tasks=ALGEBRAIC,
        settings={"budget": 2000, "attempts": 1, "masks": EndToEndConfig().masks, "more_heads": False},
        summary="Train the NFSM by the paper's recipe and heads, within a budget of steps.",
    ),
    Campaign(
        name="paper_full", file="paper_full.jsonl", jobs=paper_full_jobs,
        tasks=("S3", "FF", "DFF5", "S4", "A5", "Z16", "M11"), seeds=(42, 43),
        settings={"minutes": 5.0, "until": 0, "heads": "all"},
        summary="Train the NFSM by the paper's recipe for all of its 100,000 steps, with its heads and with wide ones.",
    ),
    Campaign(
        name="comparison", file="comparison.jsonl", jobs=comparison_jobs, tasks=("Z2", "Z5", "S3", "FF", "A5", "S5"),
        cells=tuple(comparison.CELLS), settings={"seconds": 15.0, "seconds_large": 40.0},
        summary="NFSM, GRU, LSTM and Mamba- in the same plain model, with equal CPU time.",
    ),
    Campaign(
        name="supervision", file="supervision.jsonl", jobs=supervision_jobs, tasks=tuple(supervision.MACHINES),
        settings={"steps": 2000},
        summary="Learn machines from the last label, from outputs, from wrong labels and from clouds of vectors.",
    ),
    Campaign(
        name="text", file="text.jsonl", jobs=text_jobs, tasks=tuple(LANGUAGES), cells=text.CELLS, seeds=(42,),
        settings={"seconds": 20.0}, summary="Predict the next token of text that needs a state, with equal CPU time.",
    ),
    Campaign(
        name="text_machines", file="text_machines.jsonl", jobs=text_machine_jobs, seeds=(42,),
        tasks=tuple(text_machines.AUTOMATA), settings={"seconds": 20.0},
        summary="Extract text models and compare them with the automata of their languages.",
    ),
    Campaign(
        name="baselines", file="baselines.jsonl", jobs=baseline_jobs,
        tasks=("Z2", "Z16", "S3", "DFF5", "FF", "S4", "A5", "TSO3", "TSO4", "TSO5", "M11"),
        cells=("gru", "lstm", "mamba", "pdssm", "aussm", "deltaproduct", "m2rnn"), recipe="cpu", settings={"until": 0},
        summary="Train the baselines; until=N pauses every run at step N.",
    ),
    Campaign(
        name="sweeps", file="sweeps.jsonl", jobs=sweep_jobs,
        settings={"only": "*", "batch": 128, "max_length": 1 << 20, "baselines_max_length": 1 << 16},
        summary="Sweep the length of every finished run in the folder of runs.",
    ),
    Campaign(
        name="error_control", file="error_control.jsonl", jobs=error_control_jobs,
        settings={"only": "*", "words": 128, "max_length": 2_048},
        summary="Predict from the spread of its states where every finished run in the folder of runs fails.",
    ),
    Campaign(
        name="counting", file="counting.jsonl", jobs=counting_jobs,
        summary="Count modulo 2 to 16 by a rotation in floats, by integers that wrap, and by a table.",
    ),
    Campaign(
        name="stories", file="tso.jsonl", jobs=story_jobs, tasks=("TSO3", "TSO4", "TSO5"), settings={"alone": False},
        summary="Train two-layer stacks on Tracking Shuffled Objects.",
    ),
    Campaign(
        name="story_learning", file="story_learning.jsonl", jobs=story_learning_jobs, tasks=("TSO3", "TSO4", "TSO5"),
        seeds=(42, 43, 44), settings={"form": "cascade", "seconds": 300.0},
        summary="Learn Tracking Shuffled Objects by gradient, as a cascade or in two wide layers, and certify it.",
    ),
    Campaign(
        name="free_stories", file="tso.jsonl", jobs=free_story_jobs, tasks=("TSO3",), seeds=(42,),
        settings={"minutes": 40.0, "length": 256},
        summary="Train stacks on Tracking Shuffled Objects by the paper's recipe, within a time budget.",
    ),
    Campaign(
        name="story_stream", file="tso_stream.jsonl", jobs=story_stream_jobs,
        settings={"run": "runs/TSO4-42", "story": story_stream.STORY},
        summary="Record the index of every head of a trained stack along one story.",
    ),
    Campaign(
        name="geometry", file="geometry.jsonl", jobs=geometry_jobs, cells=("nfsm", "mamba", "aussm", "pdssm"),
        seeds=(geometry.SEED,), summary="Follow the state of trained models on Z5 under a constant word.",
    ),
    REDUNDANCY,
    REGIONS,
    PROTOCOLS,
    MONITORS,
    LIBRARIES,
)}  # fmt: skip

LONG: dict[str, tuple[str, ...]] = {
    "learning": (), "baselines": (), "sweeps": (), "error_control": (), "story_learning": (), "paper_recipe": (),
    "paper_full": ("heads=paper", "minutes=30"), "comparison": (),
}  # fmt: skip
"""What `python -m paper long` resumes, in this order, with its settings."""
