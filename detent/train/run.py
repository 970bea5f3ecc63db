"""Write a finished run into its folder, and load it from there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from detent import records
from detent.certify import Certificate, Verdict, certify
from detent.errors import BrokenFile
from detent.extract import Extracted
from detent.nn import Backbone
from detent.runtime import Machine
from detent.tasks import Task
from detent.tasks import task as get_task
from detent.train.build import judged, network
from detent.train.config import Plan
from detent.train.free_text import text_machine
from detent.train.induce import Run
from detent.train.run_dir import CERTIFICATE, CONFIG, HISTORY, MACHINE, TARGET, WEIGHTS, RunDir


def finish(folder: Path, run: Run) -> None:
    """Write what the run ended with, its certificate if it has one, and drop what only served to go on."""
    weights = {name: tensor.detach().contiguous() for name, tensor in run.model.state_dict().items()}
    layers = run.extracted.layers
    described = {
        "heads": " ".join(",".join(map(str, layer.heads)) for layer in layers),
        "start": " ".join(",".join(map(str, layer.start)) for layer in layers),
        "weights": run.extracted.weights,
        "came": json.dumps({"steps": run.steps, "restarts": run.restarts, "seconds": run.seconds}),
    }
    machine_of(run.plan, run.task, run.model, run.extracted).save(folder / MACHINE)
    if run.certified:
        run.certificate().write(folder / CERTIFICATE)
    # last, because a folder with weights is a run that is over
    records.write_atomically(folder / WEIGHTS, to_bytes(weights, described))
    RunDir(folder).finish()


def finished(folder: Path) -> Run | None:
    """The run of a folder, if it is over."""
    if not (folder / WEIGHTS).exists():
        return None
    plan, model = load(folder)
    task = task_of(folder, plan)
    found, verdict = judged(model, task)
    with safe_open(folder / WEIGHTS, framework="pt") as file:
        came = json.loads((file.metadata() or {}).get("came", "{}"))
    run = Run(plan, task, model, found, verdict, came.get("steps", 0), came.get("restarts", 0),
              came.get("seconds", 0.0), list(records.read(folder / HISTORY)))  # fmt: skip
    if run.certified and (folder / CERTIFICATE).exists():
        run._certificate = Certificate.read(folder / CERTIFICATE)
    return run


def load(folder: Path) -> tuple[Plan, Backbone]:
    """(the plan, the trained model in evaluation mode)."""
    plan = Plan.load(folder / CONFIG)
    try:
        with safe_open(folder / WEIGHTS, framework="pt") as file:
            described = file.metadata() or {}
        heads, starts = (
            [[int(k) for k in layer.split(",")] for layer in described[name].split(" ")] for name in ("heads", "start")
        )
        model = network(
            task_of(folder, plan), heads, starts, width=plan.width, dropout=plan.dropout, temperature=plan.temperature
        )
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (SafetensorError, OSError, RuntimeError, KeyError, ValueError) as error:
        raise BrokenFile(folder / WEIGHTS, f"these are not the weights of this run ({told(error)})") from None
    return plan, model.eval()


def told(error: Exception) -> str:
    """The reason in an error of somebody else's, in one line."""
    return " ".join(line.strip() for line in str(error).splitlines()[:2])


def task_of(folder: Path, plan: Plan) -> Task:
    """The task of a run; the folder keeps a machine of one's own, wherever its file has gone."""
    if (folder / TARGET).exists():
        return plan.heard(replace(get_task(folder / TARGET), name=Path(plan.task).stem))
    return plan.heard(get_task(plan.task))


def judge(folder: Path, against: str | None = None) -> tuple[Backbone, Extracted, Verdict, str]:
    """(the model of a run, the machine read out of it, whether it is the run's task or the one named, a title)."""
    plan, model = load(folder)
    task = task_of(folder, plan)
    found, verdict = judged(model, task)
    if against is not None:
        verdict = certify(found, get_task(against).machine, labels=task.label_kind)
    return model, found, verdict, plan.title(task.name)


def read_out(folder: Path) -> tuple[Extracted, Machine]:
    """(what is read out of the model of a run, the same as a machine that needs no model)."""
    plan, model = load(folder)
    task = task_of(folder, plan)
    found, _ = judged(model, task)
    return found, machine_of(plan, task, model, found)


def machine_of(plan: Plan, task: Task, model: Backbone, found: Extracted) -> Machine:
    """The machine without the model, with a word about where it comes from; of a task with a question it answers."""
    about = {"task": task.name, "recipe": plan.arm, "seed": plan.seed}
    if task.question is None:
        return found.to_machine({**about, "labels": task.label_kind})
    answering, reads = text_machine(model, found)
    return Machine.of(answering, about={"weights": found.weights, **about, "labels": "answers", "reads": reads})
