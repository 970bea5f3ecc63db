"""What a report tells, read from the files of a run's folder; whatever is not there is None."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from detent import records
from detent.automata import Mealy, Moore
from detent.certify import Report, Verdict, certify
from detent.certify.certificate import read_content
from detent.certify.check import check
from detent.errors import BrokenFile, DetentError
from detent.runtime import Machine, load
from detent.tasks import Task, task

CONFIG, HISTORY, MACHINE, CERTIFICATE = "config.json", "history.jsonl", "machine.json", "certificate.json"
TARGET, SWEEP = "target.json", "sweeps.jsonl"


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
        if not (folder / CONFIG).is_file():
            raise BrokenFile(folder, f"this is not the folder of a run: there is no {CONFIG} in it.")
        config = _config(folder / CONFIG)
        certificate = _certificate(folder / CERTIFICATE)
        return cls(
            folder=folder, config=config, task=_task(folder, config["task"]), history=_rows(folder / HISTORY),
            machine=load(folder / MACHINE) if (folder / MACHINE).is_file() else None, certificate=certificate,
            checked=None if certificate is None else check(certificate), sweep=_rows(folder / SWEEP),
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


def _config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BrokenFile(path, f"it cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise BrokenFile(path, f"this is not the plan of a run ({error}).") from None
    if not isinstance(config, dict) or not isinstance(config.get("task"), str):
        raise BrokenFile(path, "this is not the plan of a run (it names no task).")
    return config


def _task(folder: Path, name: str) -> Task | None:
    """A machine of one's own is kept in the folder, wherever its file has gone."""
    try:
        return replace(task(folder / TARGET), name=Path(name).stem) if (folder / TARGET).is_file() else task(name)
    except DetentError:
        return None


def _rows(path: Path) -> list[records.Row]:
    return list(records.read(path)) if path.is_file() else []


def _certificate(path: Path) -> dict[str, Any] | None:
    return read_content(path) if path.is_file() else None


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
