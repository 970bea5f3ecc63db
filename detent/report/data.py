"""What a report tells, read from the files of a run's folder; whatever is not there is None."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from detent import records
from detent.automata import Mealy, Moore
from detent.certify import Report, Verdict, certify
from detent.certify.check import check
from detent.errors import DetentError
from detent.runtime import Machine
from detent.tasks import Task
from detent.train.run_dir import RunDir


@dataclass(frozen=True, kw_only=True)
class Told:
    """A run, as far as its folder tells it."""

    folder: Path
    config: dict[str, Any]
    task: Task | None
    """None when its machine file is no longer where it was."""
    history: list[records.Row]
    machine: Machine | None
    """What was read out of the network."""
    certificate: dict[str, Any] | None
    checked: Report | None
    """What the check of the certificate found, made while the report was written."""
    sweep: list[records.Row]

    @classmethod
    def of(cls, folder: Path) -> Told:
        run = RunDir(folder)
        config, certificate = run.config(), run.certificate()
        return cls(
            folder=folder, config=config, task=_task(run), history=run.history(),
            machine=run.machine(), certificate=certificate,
            checked=None if certificate is None else check(certificate), sweep=run.sweeps(),
        )  # fmt: skip

    @property
    def name(self) -> str:
        return str(self.task.name if self.task is not None else self.config["task"])

    @property
    def target(self) -> Moore | Mealy | None:
        """What the network was compared with."""
        if self.certificate is None or not self.checked:
            return self._wanted
        return _target(self.certificate["target"], self.certificate["symbols"])

    @property
    def _wanted(self) -> Moore | Mealy | None:
        return None if self.task is None else self.task.machine

    def verdict(self) -> Verdict | None:
        """The comparison made anew, for a run without a certificate; None when something for it is missing."""
        if self.machine is None or self._wanted is None or self.machine.about.get("labels", "states") != "states":
            return None
        try:
            return certify(self.machine, self._wanted)
        except DetentError:  # the task's file holds another machine by now
            return None


def _task(run: RunDir) -> Task | None:
    try:
        return run.task()
    except DetentError:
        return None


def _target(told: dict[str, Any], symbols: list[str]) -> Moore | Mealy:
    """The target as it stands in a certificate."""
    parts = {
        "symbols": tuple(symbols),
        "states": tuple(told["states"]),
        "tables": told["tables"],
        "start": told["start"],
    }
    if told["says"] == "states":
        return Moore(**parts, outputs=tuple(told["states"]), readout=np.arange(len(told["states"])))
    return Mealy(**parts, outputs=tuple(told["outputs"]), readout=told["readout"])
