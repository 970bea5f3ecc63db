"""A trained run: the model, the machine extracted from it and the verdict; saved in a folder and loaded from it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from exactstate.automata import Mealy
from exactstate.certify import Certificate, Verdict, certify
from exactstate.certify.check import check
from exactstate.certify.target import difference_from_task
from exactstate.errors import BrokenFile, InvalidConfig
from exactstate.extract import Extracted
from exactstate.nn import Backbone
from exactstate.records import Row
from exactstate.runtime import Machine
from exactstate.tasks import AnswerTask, Batch, Task
from exactstate.tasks import task as get_task
from exactstate.train.build import load_model, save_model
from exactstate.train.config import TrainConfig
from exactstate.train.recheck import difference_from_model
from exactstate.train.run_dir import RunDir
from exactstate.train.verify import answer_machine, extract_and_certify, make_certificate, question_of

LEARNED = 0.9
"""Sequence accuracy from which on a baseline counts as having learned: the threshold of its failing length."""


@dataclass(frozen=True, eq=False)
class Compressed:
    """A network with the heads that its machine needs, distilled from the extracted machine of a larger one."""

    model: Backbone
    extracted: Extracted
    verdict: Verdict


@dataclass(kw_only=True)
class Run:
    """What came of a configuration."""

    config: TrainConfig
    task: Task
    model: Backbone
    steps: int = 0
    """Of all attempts."""
    restarts: int = 0
    seconds: float = 0.0
    history: list[Row] = field(default_factory=list, repr=False)
    finished: bool = True
    """False where training was paused at a step."""
    resumed_at: int = 0
    """The step at which this process resumed the run."""
    last_state: Row = field(default_factory=dict, repr=False)
    """Counters of the last phase after its last step; empty for a run that was loaded."""
    result: tuple[Extracted, Verdict] | None = field(default=None, repr=False)
    """The extracted machine and the verdict; None for a cell without tables."""
    compressed: Compressed | None = field(default=None, repr=False)
    """A network with the heads that the machine needs, distilled from it; of the recipe `gradient`."""
    _certificate: Certificate | None = field(default=None, repr=False)
    _saved: RunDir | None = field(default=None, repr=False)
    """Where the run was loaded from; its certificate is read from there, and checked."""

    @property
    def extracted(self) -> Extracted:
        """The machine extracted from the model."""
        return self._result[0]

    @property
    def verdict(self) -> Verdict:
        """Whether the machine is the target; if not, a shortest word on which they differ."""
        return self._result[1]

    @property
    def _result(self) -> tuple[Extracted, Verdict]:
        if self.result is None:
            why = f"{self.config.cell} has no tables to extract" if self.finished else "this run is not finished"
            raise InvalidConfig(f"{why}; there is no machine.")
        return self.result

    @property
    def certified(self) -> bool:
        """Whether the machine is proved to be the target."""
        return self.result is not None and bool(self.result[1])

    @property
    def accuracy(self) -> float:
        """The best share of words right at a check."""
        return max((float(row["accuracy"]) for row in self.history if "accuracy" in row), default=0.0)

    @property
    def first_error(self) -> float:
        """The mean first error of the words of the last step; of the last check for a run that was loaded."""
        rows = [row["first_error"] for row in self.history if "first_error" in row]
        return float(self.last_state.get("mean_first_error", rows[-1] if rows else 0.0))

    @property
    def learned(self) -> bool:
        """Certified; for a cell without tables: at least LEARNED of the words right at a check."""
        return self.certified if self.config.cell == "nfsm" else self.accuracy >= LEARNED

    @property
    def heads(self) -> tuple[int, ...]:
        """Indices of every head, of all layers."""
        return tuple(d for layer in self.extracted.heads for d in layer)

    def failure_frequency(self, words: int = 1000) -> str:
        """How often training words take the transition on which the machine fails, in a sentence; empty if it does not.

        Counted in fresh words of the task.
        """
        failure = self.verdict.failure
        if failure is None or not failure.word:
            return ""
        machine, word = self.task.machine, self.task.machine.encode(list(failure.word))
        state, symbol = machine.run(word[:-1]), int(word[-1])
        batch = self._fresh_words(words)
        before = np.concatenate([batch.before[:, None], batch.states[:, :-1]], axis=1)
        met = int(((before == state) & (batch.inputs == symbol)).any(axis=1).sum())
        visited = int((before == state).any(axis=1).sum())
        return (
            f"state {machine.states[state]!r} was met in {visited:,} of {words:,} words, and "
            f"{machine.symbols[symbol]!r} in it in {met:,}"
        )

    def rarest_state(self, words: int = 1000) -> str:
        """In how many training words the rarest state is met, in a sentence; counted in fresh words of the task."""
        batch = self._fresh_words(words)
        before = np.concatenate([batch.before[:, None], batch.states[:, :-1]], axis=1)
        met = [int((before == state).any(axis=1).sum()) for state in range(self.task.machine.n_states)]
        state = int(np.argmin(met))
        return f"the rarest state, {self.task.machine.states[state]!r}, was met in {met[state]:,} of {words:,} words"

    def _fresh_words(self, words: int) -> Batch:
        """Words of the task with their states, long enough to reach all that it reaches."""
        depth = getattr(self.task.sampler, "depth", 0)
        return Task.sample(self.task, words, max(32, depth + 8), np.random.default_rng(self.config.seed))

    def certificate(self) -> Certificate:
        """What is proved of this network, with the rounding of every format down to the first that is too coarse.

        That of a run that was loaded is the one in its folder, which is checked and compared with the network; only
        its error bounds are not computed again.
        """
        if self._certificate is None and self._saved is not None and self._saved.certificate_path.is_file():
            self._certificate = self._checked_certificate(self._saved)
        if self._certificate is None:
            title = self.config.title(self.task.name)
            self._certificate = make_certificate(self.model, *self._result, title=title)
        return self._certificate

    def _checked_certificate(self, run_dir: RunDir) -> Certificate:
        path, content = run_dir.certificate_path, run_dir.certificate()
        assert content is not None
        again = f"`exactstate certify {run_dir.path} -o {path}` writes a new one"
        if not (report := check(content)):
            raise BrokenFile(path, f"this certificate is not valid: {' '.join(report.findings)} {again}.")
        why = difference_from_model(content, self.model, rounding=False)
        if why is None and (why := difference_from_task(content, self.task)) is not None:
            why = f"its target is not {self.task.name}: {why}"
        if why is not None:
            raise BrokenFile(path, f"this certificate is not about this run: {why}; {again}.")
        return Certificate(content)

    def machine(self) -> Machine:
        """The machine without the model; for a task with a question it answers."""
        about = {"task": self.task.name, "recipe": self.config.recipe, "seed": self.config.seed}
        if self.task.question is None:
            about = {**about, "labels": self.task.label_kind}
            if self.task.label_kind == "outputs" and isinstance(self.task.machine, Mealy):
                return replace(self.extracted.to_machine(about), automaton=self.extracted.minimized)  # stays Mealy
            return self.extracted.to_machine(about)
        answering, reads = answer_machine(self.model, self.extracted)
        about = {"weights": self.extracted.weights, **about, "labels": "answers", "reads": reads}
        return Machine.of(answering, about=about)

    def compressed_certificate(self) -> Certificate | None:
        """What is proved of the compressed network; None where there is none, or where it is not certified."""
        if self.compressed is None or not self.compressed.verdict:
            return None
        title = f"{self.config.title(self.task.name)}, compressed"
        return make_certificate(
            self.compressed.model, self.compressed.extracted, self.compressed.verdict, title=title
        )  # fmt: skip

    @property
    def stages(self) -> dict[str, Row]:
        """What the stages of `gradient` left (learned, pruned, compressed): heads, parameters, sizes and margins."""
        return {row["stage"]: row for row in self.history if row.get("phase") == "stage"}

    @property
    def repairs(self) -> int:
        """Rounds of training on the counterexamples of a refused certificate."""
        return sum(row["phase"] == "repair" or bool(row.get("counterexamples")) for row in self.history)

    @property
    def tables(self) -> str:
        """By which method a `gradient` run learned its tables; see `tables_method`."""
        return tables_method(self.history)

    def row(self) -> Row:
        """The result row of the run."""
        config = self.config
        row = {
            "task": self.task.name, "cell": config.cell, "recipe": config.recipe, "seed": config.seed,
            "words": self.task.sampler.describe(self.task.machine.symbols), "labels": self.task.label_kind,
            "learned": self.learned, "certified": self.certified, "steps": self.steps, "restarts": self.restarts,
            "seconds": round(self.seconds, 3),
        }  # fmt: skip
        if self.result is None:
            sizes = {name: getattr(config, name) for name in ("layers", "width", "channels", "states", "dropout")}
            return row | {
                "accuracy": self.accuracy, "learned_at": LEARNED, "first_error": round(self.first_error, 2),
                "finished": self.finished, "resumed_at": self.resumed_at, "size": sizes,
                "settings": asdict(config.end_to_end),
            }  # fmt: skip
        certificate = self.certificate() if self.certified else None
        return row | {
            "heads": list(self.heads), "verdict": self.verdict.explain(), "weights": self.extracted.weights,
            "certificate": None if certificate is None else certificate.sha256,
            "proved": [] if certificate is None else list(certificate.proved),
            **({"tables": self.tables, "repairs": self.repairs, "stages": self.stages} if self.stages else {}),
        }  # fmt: skip

    def save(self, run_dir: RunDir) -> None:
        """Write what the run ended with, and remove what only resuming needs."""
        if self.config.cell == "nfsm":
            run_dir.write_result(self.machine(), self.certificate() if self.certified else None)
        if self.compressed is not None:
            certificate = self.compressed_certificate()
            if certificate is not None:
                certificate.write(run_dir.compressed_certificate_path)
            save_model(run_dir.stage_path("compressed"), self.compressed.model, {})
        numbers = {"steps": self.steps, "restarts": self.restarts, "seconds": self.seconds}
        weights = {"weights": self.extracted.weights} if self.result is not None else {}
        # last, because a folder with weights is a finished run
        save_model(run_dir.weights_path, self.model, {**weights, "run": json.dumps(numbers)})
        run_dir.finish()


def tables_method(history: Sequence[Row]) -> str:
    """How a `gradient` run learned its tables at the last attempt: every head alone, a cascade, one large head, label
    embeddings, or a wide layer."""
    last = max((row.get("attempt", 0) for row in history), default=0)
    phases = {row.get("phase") for row in history if row.get("attempt", 0) == last}
    methods = {
        "embed": "label embeddings", "search": "every head alone", "cascade": "cascade", "large_head": "one large head",
    }  # fmt: skip
    return next((method for phase, method in methods.items() if phase in phases), "wide layer")


def load_run(folder: str | os.PathLike[str], *, extract: bool = True) -> Run:
    """The finished run of a folder; without `extract` only its model is loaded."""
    run_dir = RunDir(folder)
    config = run_dir.train_config()
    if not run_dir.finished:
        raise BrokenFile(run_dir.path, "this run is not finished; repeat `exactstate train` to resume it.")
    task = config.apply_supervision(run_dir.task())
    model, metadata = load_model(run_dir.weights_path, config, task)
    run = Run(config=config, task=task, model=model, history=run_dir.history(), **json.loads(metadata.get("run", "{}")))
    if config.cell == "nfsm" and extract:
        run.result = extract_and_certify(model, task)
        run._saved = run_dir
        if run_dir.stage_path("compressed").exists():
            small = load_model(run_dir.stage_path("compressed"), config.compressed(), task)[0]
            run.compressed = Compressed(small, *extract_and_certify(small, task))
    return run


def load_nfsm_run(folder: str | os.PathLike[str]) -> Run:
    """The same of a run that has a machine; others are refused."""
    cell = RunDir(folder).config().get("cell", "nfsm")
    if cell != "nfsm":
        raise BrokenFile(
            RunDir(folder).config_path, f"this is a run of {cell!r}, which has no tables to extract; sweep it."
        )
    return load_run(folder)


def certify_run(folder: str | os.PathLike[str], against: str | None = None) -> tuple[Run, Verdict]:
    """(the run, whether its machine is the run's task, or the one named)."""
    run = load_nfsm_run(folder)
    if against is None:
        return run, run.verdict
    named = get_task(against)
    if not isinstance(run.task, AnswerTask):
        return run, certify(run.extracted, named.machine, labels=run.task.label_kind)
    target = AnswerTask.of_task(named)  # raises InvalidConfig where nothing is asked: there is nothing else to compare
    return run, certify(run.extracted, target.machine, labels=target.label_kind, question=question_of(target))
