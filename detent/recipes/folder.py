"""A run as a folder: its plan, weights, history, and the machine that was read out of it.

config.json  model.safetensors  history.jsonl  machine.json
"""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from detent import records
from detent.automata import minimize, write_machine
from detent.certification import Certificate
from detent.errors import BrokenFile, InvalidConfig
from detent.layers import NFSM
from detent.models import Backbone
from detent.recipes.learning import Row, Run, Watcher
from detent.recipes.plan import Plan
from detent.tasks import task

CONFIG, WEIGHTS, HISTORY = "config.json", "model.safetensors", "history.jsonl"
MACHINE, CERTIFICATE = "machine.json", "certificate.json"


def prepare(folder: Path, plan: Plan) -> Watcher:
    """Make the folder, write the plan, and return what adds rows to its history; one that holds a run is refused."""
    if folder.is_file() or (folder / WEIGHTS).exists() or (folder / HISTORY).exists():
        raise InvalidConfig(f"{folder} holds a run already; name another folder, or remove it.")
    folder.mkdir(parents=True, exist_ok=True)
    plan.save(folder / CONFIG)

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
    write_machine(minimize(run.extracted.machine), folder / MACHINE)
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
        machine = task(plan.task).machine
        block = NFSM(plan.width, heads, start=start, temperature=plan.temperature)
        model = Backbone(machine.n_symbols, machine.n_states, [block], width=plan.width, dropout=plan.dropout)
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (SafetensorError, OSError, RuntimeError, KeyError, ValueError) as error:
        raise BrokenFile(
            folder / WEIGHTS, f"these are not the weights of this run ({str(error).splitlines()[0]})"
        ) from None
    return plan, model.eval()
