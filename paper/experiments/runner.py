"""One runner for all experiments: `python -m paper run NAME`.

A `Campaign` is a name, a file of rows and a function that lists its jobs. A `Job` is a key and a function that computes
its rows. The runner skips a job if a row with its key is already in the file, and appends the rows of the others, each
job's as soon as it is done, with machine, date, commit, versions and command. An interrupted campaign resumes when the
command is repeated. On a Ray cluster (`--cluster`) the jobs run as tasks, and this process alone appends their rows.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from exactstate import records
from exactstate.errors import InvalidConfig, unknown
from exactstate.records import Row
from exactstate.runtime.cluster import RETRIES, connected

SEEDS = (42, 43, 44, 45, 46)
Setting = bool | int | float | str


@dataclass(frozen=True)
class Job:
    """One unit of work."""

    key: Row
    """Entries that identify its row."""
    compute: Callable[[], Row | list[Row]]
    """Its rows; the first one holds the entries of the key."""

    def is_done(self, rows: Iterable[Row]) -> bool:
        """Whether a finished row with this key is there."""
        return any(
            row.get("finished", True) and all(row.get(name) == value for name, value in self.key.items())
            for row in rows
        )


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a campaign is run over."""

    rows: Path
    """The file that rows are appended to."""
    runs: Path = Path("runs")
    """The folder of training runs."""
    tasks: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    seeds: tuple[int, ...] = SEEDS
    recipe: str | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """An experiment: the jobs that make the rows of a file. Its other fields are the default options."""

    name: str
    summary: str
    """What it does, in a sentence."""
    file: str
    """The file in `results`."""
    jobs: Callable[[Options], Iterable[Job]]
    tasks: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    seeds: tuple[int, ...] = SEEDS
    recipe: str | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def options(
        self, *, rows: Path | None = None, runs: Path = Path("runs"), tasks: Sequence[str] = (),
        cells: Sequence[str] = (), seeds: Sequence[int] = (), recipe: str | None = None, settings: Sequence[str] = (),
    ) -> Options:  # fmt: skip
        """The defaults with some replaced; `settings` are strings such as "budget=1000"."""
        for name, given, default in (("tasks", tasks, self.tasks), ("cells", cells, self.cells)):
            if given and not default:
                raise InvalidConfig(f"{self.name} does not vary {name}; leave --{name} out.")
        if recipe is not None and self.recipe is None:
            raise InvalidConfig(f"{self.name} has one recipe; leave --recipe out.")
        return Options(
            rows=rows or Path("results") / self.file, runs=runs, tasks=tuple(tasks) or self.tasks,
            cells=tuple(cells) or self.cells, seeds=tuple(seeds) or self.seeds, recipe=recipe or self.recipe,
            settings={**self.settings, **dict(map(self._setting, settings))},
        )  # fmt: skip

    def _setting(self, text: str) -> tuple[str, Setting]:
        """(name, value) of "name=value", with the type of the default."""
        name, _, value = text.partition("=")
        if name not in self.settings:
            raise unknown("setting", name, self.settings)
        kind = type(self.settings[name])
        try:
            if kind is bool:
                return name, {"true": True, "false": False}[value.lower()]
            return name, kind(value)
        except (KeyError, ValueError):
            raise InvalidConfig(f"{name} takes a value such as {self.settings[name]}; got {value!r}.") from None


def run(
    campaign: Campaign, options: Options, *, cluster: str | None = None, workers: int | None = None
) -> Iterator[tuple[Job, list[Row]]]:  # fmt: skip
    """Compute what is missing; yields every job with its new rows, none where they were there already.

    On a cluster (`local` or the address of one) the jobs that are missing run side by side; they are yielded as they
    finish, and a job whose worker dies runs again.
    """
    stored = list(records.read(options.rows)) if options.rows.exists() else []
    missing: list[Job] = []
    for job in campaign.jobs(options):
        if job.is_done(stored):
            yield job, []
        elif cluster is not None:
            missing.append(job)
        else:
            rows = _computed(job, Path.cwd())
            stored += rows
            yield job, _appended(options.rows, rows)
    if cluster is not None and missing:
        for job, rows in _on_cluster(missing, cluster, workers):
            yield job, _appended(options.rows, rows)


def _on_cluster(jobs: list[Job], address: str, workers: int | None) -> Iterator[tuple[Job, list[Row]]]:
    with connected(address, workers) as ray:
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_computed)
        running = {task.remote(job, Path.cwd()): job for job in jobs}
        while running:
            (ready,), _ = ray.wait(list(running), num_returns=1)
            rows = ray.get(ready)
            # the command is this one, not that of the worker
            yield running.pop(ready), [{**rows[0], "command": records.stamp()["command"]}, *rows[1:]]


def _computed(job: Job, folder: Path) -> list[Row]:
    """The rows of a job, the first with machine, date, commit, versions and command; paths are relative to `folder`."""
    import torch

    os.chdir(folder)
    torch.set_num_threads(1)  # arrays are small: two runs side by side are faster than one on two cores
    computed = job.compute()
    rows = [computed] if isinstance(computed, dict) else computed
    return [{**rows[0], **records.stamp(), **_commit()}, *rows[1:]]


def _commit() -> Row:
    """The commit of the checkout, where it is one of git."""
    said = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {"commit": said.stdout.strip()} if said.returncode == 0 else {}


def _appended(path: Path, rows: list[Row]) -> list[Row]:
    for row in rows:
        records.append(path, row)
    return rows
