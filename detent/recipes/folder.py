"""A run as a folder: its plan, weights, history, and the machine that was read out of it.

config.json  model.safetensors  history.jsonl  machine.json  certificate.json, if it is certified;
and target.json, where the task is no known one but a machine of one's own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from detent import records
from detent.automata import write_machine
from detent.certification import Certificate, Verdict, certify
from detent.errors import BrokenFile, InvalidConfig
from detent.extraction import Extracted
from detent.extraction.standalone import standalone
from detent.layers import NFSM
from detent.models import Backbone
from detent.recipes.learning import Row, Run, Watcher, judged
from detent.recipes.plan import Plan
from detent.runtime import Machine
from detent.tasks import Task, task
from detent.tasks.registry import by_name

CONFIG, WEIGHTS, HISTORY = "config.json", "model.safetensors", "history.jsonl"
MACHINE, CERTIFICATE, TARGET = "machine.json", "certificate.json", "target.json"


def prepare(folder: Path, plan: Plan) -> Watcher:
    """Make the folder, write the plan, and return what adds rows to its history; one that holds a run is refused."""
    if folder.is_file() or (folder / WEIGHTS).exists() or (folder / HISTORY).exists():
        raise InvalidConfig(f"{folder} holds a run already; name another folder, or remove it.")
    folder.mkdir(parents=True, exist_ok=True)
    plan.save(folder / CONFIG)
    if by_name(plan.task) is None:
        write_machine(task(plan.task).machine, folder / TARGET)

    def note(row: Row) -> None:
        records.append(folder / HISTORY, row)

    return note


def finish(folder: Path, run: Run) -> Certificate | None:
    """Write what the run ended with; its certificate, if it has one."""
    weights = {name: tensor.detach().contiguous() for name, tensor in run.model.state_dict().items()}
    block = run.model.layers[0].block
    assert isinstance(block, NFSM)
    described = {
        "heads": ",".join(map(str, block.heads)),
        "start": ",".join(map(str, block.home)),
        "weights": run.extracted.weights,
    }
    records.write_atomically(folder / WEIGHTS, to_bytes(weights, described))
    machine_of(run.plan, run.task, run.extracted).save(folder / MACHINE)
    if not run.certified:
        return None
    certificate = run.certificate()
    certificate.write(folder / CERTIFICATE)
    return certificate


def load(folder: Path) -> tuple[Plan, Backbone]:
    """(the plan, the trained model in evaluation mode)."""
    from safetensors import safe_open

    plan = Plan.load(folder / CONFIG)
    try:
        with safe_open(folder / WEIGHTS, framework="pt") as file:
            described = file.metadata() or {}
        heads, start = (tuple(int(k) for k in described[name].split(",")) for name in ("heads", "start"))
        machine = task_of(folder, plan).machine
        block = NFSM(plan.width, heads, start=start, temperature=plan.temperature)
        model = Backbone(machine.n_symbols, machine.n_states, [block], width=plan.width, dropout=plan.dropout)
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (SafetensorError, OSError, RuntimeError, KeyError, ValueError) as error:
        raise BrokenFile(
            folder / WEIGHTS, f"these are not the weights of this run ({str(error).splitlines()[0]})"
        ) from None
    return plan, model.eval()


def task_of(folder: Path, plan: Plan) -> Task:
    """The task of a run; the folder keeps a machine of one's own, wherever its file has gone."""
    if by_name(plan.task) is None and (folder / TARGET).exists():
        return replace(task(folder / TARGET), name=Path(plan.task).stem)
    return task(plan.task)


def judge(folder: Path, against: str | None = None) -> tuple[Backbone, Extracted, Verdict, str]:
    """(the model of a run, the machine read out of it, whether it is the run's task or the one named, a title)."""
    plan, model = load(folder)
    speaker = task_of(folder, plan)
    found, verdict = judged(model, speaker)
    if against is not None:
        verdict = certify(found, task(against).machine)
    return model, found, verdict, plan.title(speaker.name)


def read_out(folder: Path) -> tuple[Extracted, Machine]:
    """(what is read out of the model of a run, the same as a machine that needs no model)."""
    plan, model = load(folder)
    speaker = task_of(folder, plan)
    found, _ = judged(model, speaker)
    return found, machine_of(plan, speaker, found)


def machine_of(plan: Plan, speaker: Task, found: Extracted) -> Machine:
    """The machine without the model, with a word about where it comes from."""
    return standalone(found, {"task": speaker.name, "recipe": plan.arm, "seed": plan.seed, "labels": "states"})
