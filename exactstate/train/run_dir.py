"""The folder of a training run. `RunDir` alone knows the names of its files, and it does not import torch.

config.json             how the run was trained: a `TrainConfig`
target.json             the target machine, where the task is not one of the registry
history.jsonl           one row per check
checkpoint.safetensors  while the run is unfinished: what resuming needs; best.safetensors: the best weights so far
model.safetensors       the trained weights; written last, so a folder that has them is a finished run
machine.json            the machine extracted from an NFSM
certificate.json        where the machine is certified
stage-*.safetensors     the network after a stage of training: stage-compressed has minimal heads ...
certificate-compressed.json  ... and a certificate of its own
sweeps.jsonl            rows of length sweeps
report.html             all of it on one page
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exactstate import records
from exactstate.automata import Mealy, Moore, read_machine, write_machine
from exactstate.certify.certificate import read_content
from exactstate.errors import BrokenFile, InvalidConfig
from exactstate.records import Row
from exactstate.runtime import Machine, load
from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.tasks.registry import by_name
from exactstate.train.config import TrainConfig

if TYPE_CHECKING:
    from exactstate.certify import Certificate

CONFIG, TARGET, HISTORY = "config.json", "target.json", "history.jsonl"
CHECKPOINT, BEST = "checkpoint.safetensors", "best.safetensors"
WEIGHTS, MACHINE, CERTIFICATE = "model.safetensors", "machine.json", "certificate.json"
COMPRESSED_CERTIFICATE = "certificate-compressed.json"
SWEEPS, REPORT, LOCK = "sweeps.jsonl", "report.html", ".lock"


class RunDir:
    """One run on disk.

    >>> RunDir("runs/S3-42").certificate_path.name
    'certificate.json'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.config_path = self.path / CONFIG
        self.target_path = self.path / TARGET
        self.history_path = self.path / HISTORY
        self.checkpoint_path = self.path / CHECKPOINT
        self.best_path = self.path / BEST
        self.weights_path = self.path / WEIGHTS
        self.machine_path = self.path / MACHINE
        self.certificate_path = self.path / CERTIFICATE
        self.compressed_certificate_path = self.path / COMPRESSED_CERTIFICATE
        self.sweeps_path = self.path / SWEEPS
        self.report_path = self.path / REPORT

    def __repr__(self) -> str:
        return f"RunDir({str(self.path)!r})"

    def stage_path(self, name: str) -> Path:
        """The model after an intermediate stage of training, such as pruning."""
        return self.path / f"stage-{name}.safetensors"

    @classmethod
    def find(cls, folder: str | os.PathLike[str], pattern: str = "*") -> Iterator[RunDir]:
        """The runs directly below a folder, finished or not, by name; those whose name fits the pattern."""
        return (cls(path.parent) for path in sorted(Path(folder).glob(f"{pattern}/{CONFIG}")))

    @property
    def exists(self) -> bool:
        """Whether the folder holds a run."""
        return self.config_path.is_file()

    @property
    def finished(self) -> bool:
        """Whether the run has ended."""
        return self.weights_path.exists()

    def claim(self, config: TrainConfig, task: Task) -> None:
        """Create the folder for this configuration, or see that it holds this very run; another one is refused."""
        self.refuse_foreign()
        if self.exists:
            self._refuse_other(config, task)
            return
        self.path.mkdir(parents=True, exist_ok=True)
        known = by_name(config.task)
        if known is None or config.apply_supervision(known).machine != task.machine:
            write_machine(task.machine, self.target_path)
        config.save(self.config_path)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from training in this folder; one that does already is named in the error.

        The lock belongs to the process, so a killed one leaves none behind. Systems without locks have none.
        """
        if sys.platform == "win32":
            yield
            return
        import fcntl

        path = self.path / LOCK
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise BrokenFile(path, f"it cannot be written: {error.strerror}.") from None
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.pread(file, 20, 0).decode(errors="replace").strip()
                who = f"process {owner}" if owner.isdigit() else "another process"
                raise InvalidConfig(
                    f"{self.path} is in use: {who} trains there; wait for it, or name another folder with --out."
                ) from None
            except OSError:  # a file system without locks
                pass
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
        finally:
            os.close(file)

    def refuse_foreign(self) -> None:
        """Refuse a folder with files that are not a run's; a new or an empty folder will do."""
        path = self.path
        if self.exists:
            return
        if path.is_file() or (path.is_dir() and any(not inside.name.startswith(".") for inside in path.iterdir())):
            raise InvalidConfig(f"{path} holds something else than a run; name another folder.")

    def _refuse_other(self, config: TrainConfig, task: Task) -> None:
        """Refuse a folder with another configuration, or with another target under the same name."""
        kept, wanted = self.config(), config.to_json()
        other = [f"{name} {kept.get(name)}, not {wanted[name]}" for name in wanted if kept.get(name) != wanted[name]]
        if other:
            raise InvalidConfig(
                f"{self.path} holds a run already, with {'; '.join(other)}; name another folder with --out."
            )
        if self.target_path.exists() and read_machine(self.target_path) != task.machine:
            raise InvalidConfig(
                f"{self.path} holds a run already, and {config.task} has changed since; name another folder."
            )

    def withdraw(self) -> None:
        """Remove the run, if nothing was learned in it yet."""
        if not (self.weights_path.exists() or self.checkpoint_path.exists()) and not self.history():
            for path in (self.config_path, self.target_path, self.history_path, self.path / LOCK):
                path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self.path.rmdir()

    def finish(self) -> None:
        """Remove what only an unfinished run needs."""
        stages = (path for name in ("pruned-*", "large-head") for path in self.path.glob(f"stage-{name}.safetensors"))
        for path in (self.checkpoint_path, self.best_path, *stages):
            path.unlink(missing_ok=True)

    def config(self) -> dict[str, Any]:
        """The configuration as JSON holds it."""
        if not self.exists:
            raise BrokenFile(self.path, f"this is not the folder of a run: there is no {CONFIG} in it.")
        try:
            config = json.loads(self.config_path.read_text(encoding="utf-8"))
        except OSError as error:
            raise BrokenFile(self.config_path, f"it cannot be read: {error.strerror}.") from None
        except ValueError as error:
            raise BrokenFile(self.config_path, f"this is not the configuration of a run ({error}).") from None
        if not isinstance(config, dict) or not isinstance(config.get("task"), str):
            raise BrokenFile(self.config_path, "this is not the configuration of a run (it names no task).")
        if "arm" in config or "settings" in config:
            raise BrokenFile(
                self.config_path, "this run was made by exactstate 0.1 and cannot be loaded; train it again."
            )
        return config

    def train_config(self) -> TrainConfig:
        """The configuration, validated."""
        try:
            return TrainConfig.from_json(self.config())
        except BrokenFile:
            raise
        except (ValueError, TypeError, LookupError) as error:
            raise BrokenFile(self.config_path, f"this is not the configuration of a run ({error}).") from None

    def task(self) -> Task:
        """The task of the run; its target is kept in the folder where it is no task of the registry."""
        name = self.config()["task"]
        if self.target_path.exists():
            return replace(get_task(self.target_path), name=Path(name).stem)
        return get_task(name)

    def target(self) -> Moore | Mealy:
        """The machine that the run is compared with."""
        return self.task().machine

    def history(self) -> list[Row]:
        """The rows of all checks so far."""
        return list(records.read(self.history_path)) if self.history_path.exists() else []

    def append_history(self, row: Row) -> None:
        """Add the row of a check."""
        records.append(self.history_path, row)

    def truncate_history(self, rows: int) -> list[Row]:
        """The first rows of the history; the others are cut off, because the resumed run will write them again."""
        kept = self.history()[:rows]
        records.write_atomically(self.history_path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept))
        return kept

    def machine(self) -> Machine | None:
        """The extracted machine; None where there is none."""
        return load(self.machine_path) if self.machine_path.is_file() else None

    def certificate(self) -> dict[str, Any] | None:
        """The content of the certificate; None where there is none."""
        return read_content(self.certificate_path) if self.certificate_path.is_file() else None

    def compressed_certificate(self) -> dict[str, Any] | None:
        """That of the compressed network."""
        path = self.compressed_certificate_path
        return read_content(path) if path.is_file() else None

    def write_result(self, machine: Machine | None, certificate: Certificate | None) -> None:
        """Write what was extracted and certified."""
        if machine is not None:
            machine.save(self.machine_path)
        if certificate is not None:
            certificate.write(self.certificate_path)

    def sweeps(self) -> list[Row]:
        """Rows of the length sweeps."""
        return list(records.read(self.sweeps_path)) if self.sweeps_path.is_file() else []
