"""The data of a report, read from the folder of a run; what is missing there is None or empty."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exactstate.automata import Mealy, Moore
from exactstate.certify import Report, Verdict, certify
from exactstate.certify.check import check
from exactstate.certify.target import difference_from_task
from exactstate.certify.weights_file import digest_of_file
from exactstate.errors import ExactstateError
from exactstate.records import Row
from exactstate.runtime import Machine
from exactstate.tasks import Task
from exactstate.train.run_dir import RunDir


@dataclass(frozen=True, kw_only=True)
class RunData:
    """A run, as far as the files in its folder describe it."""

    folder: RunDir
    config: dict[str, Any]
    task: Task | None
    """None when the machine file it was trained on is gone."""
    history: list[Row]
    machine: Machine | None
    """The machine extracted from the network."""
    certificate: dict[str, Any] | None
    check: Report | None
    """The result of checking the certificate, made while the report is written: it is consistent, names the weights
    in the folder, and its target is the task."""
    compressed_check: Report | None
    """The same of the certificate of the compressed network, where the run has one."""
    sweeps: list[Row]
    """The rows that have accuracies by length."""

    @classmethod
    def load(cls, path: Path) -> RunData:
        folder = RunDir(path)
        config, certificate = folder.config(), folder.certificate()
        compressed = folder.compressed_certificate()
        return cls(
            folder=folder, config=config, task=_task(folder), history=folder.history(), machine=folder.machine(),
            certificate=certificate, check=None if certificate is None else _check(folder, certificate, "model"),
            compressed_check=None if compressed is None else _check(folder, compressed, "compressed"),
            sweeps=_sweeps(folder),
        )  # fmt: skip

    @property
    def name(self) -> str:
        return str(self.task.name if self.task is not None else self.config["task"])

    @property
    def cell(self) -> str:
        """The recurrence of the network."""
        cell = str(self.config.get("cell", "nfsm"))
        return cell.upper() if cell == "nfsm" else cell

    @property
    def valid_certificate(self) -> dict[str, Any] | None:
        """The certificate, if there is one that passes its check and belongs to this run."""
        return self.certificate if self.check else None

    @property
    def target(self) -> Moore | Mealy | None:
        """What the network was compared with."""
        if self.valid_certificate is None:
            return None if self.task is None else self.task.machine
        return _target(self.valid_certificate["target"], self.valid_certificate["symbols"])

    def verdict(self) -> Verdict | None:
        """The comparison of machine and target, for a run without a certificate; None when one of them is missing."""
        if self.machine is None or self.task is None or self.machine.about.get("labels", "states") != "states":
            return None
        try:
            return certify(self.machine, self.task.machine)
        except ExactstateError:  # the task's file holds another machine by now
            return None


def _check(folder: RunDir, content: dict[str, Any], network: str) -> Report:
    """Whether a certificate is valid and about a network of this run."""
    if not (report := check(content)):
        return report
    path = folder.weights_path if network == "model" else folder.stage_path(network)
    if path.is_file() and (digest := digest_of_file(path)) != content["weights"]:
        return Report((f"It is about other weights, {content['weights']}; {path.name} has {digest}.",))
    task = _task(folder)
    if task is not None and (why := difference_from_task(content, task)) is not None:
        return Report((f"Its target is not {task.name}: {why}.",))
    return report


def _task(folder: RunDir) -> Task | None:
    try:
        return folder.task()
    except ExactstateError:
        return None


def _sweeps(folder: RunDir) -> list[Row]:
    return [row for row in folder.sweeps() if isinstance(row.get("accuracies"), dict) and row["accuracies"]]


def _target(content: dict[str, Any], symbols: list[str]) -> Moore | Mealy:
    """The target that a certificate contains."""
    states = tuple(content["states"])
    parts = {"symbols": tuple(symbols), "states": states, "tables": content["tables"], "start": content["start"]}
    if content["says"] == "states":
        return Moore(**parts, outputs=states, readout=np.arange(len(states)))
    return Mealy(**parts, outputs=tuple(content["outputs"]), readout=content["readout"])
