"""How a run is trained: one frozen, validated `TrainConfig`, saved as `config.json` in the folder of the run.

A recipe (`recipes.py`) is a function that returns one. Nothing here imports torch.

    TrainConfig(task="S3", recipe="paper", heads=(3, 2), end_to_end=EndToEndConfig(steps=2_000))
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from exactstate.baselines.cells import CELLS
from exactstate.errors import InvalidConfig, unknown
from exactstate.records import write_atomically
from exactstate.tasks import AnswerTask, OutputTask, Task
from exactstate.tasks.access_words import AccessWords
from exactstate.tasks.samplers import Sampler

GRADIENTS = ("auto", "fast", "autograd")
SUPERVISION = ("states", "outputs", "answers")
STOPS = ("certified", "checks")
MAX_SEED = (1 << 62) - 1


def _at_least_one(config: object, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        if not isinstance(value, int) or value < 1:
            raise InvalidConfig(f"{name} must be at least 1; got {value!r}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class EndToEndConfig:
    """A phase of training end to end on words and labels; the defaults are the paper's."""

    batch: int = 256
    """Words per step."""
    length: int = 64
    """Their length."""
    lr: float = 1e-3
    """Learning rate at the first step, decayed by a cosine ..."""
    final_lr: float = 1e-4
    """... to this at its end."""
    mask_rate: float = 3.0
    """How fast the weight of positions after the first error decays."""
    exploration: float = 0.03
    """Weight of the exploration penalty at the first step, decayed by a cosine to a tenth."""
    gradient: str = "auto"
    """`fast` (see fast_gradient.py), `autograd`, or `auto`: fast where the model allows it."""
    masks: int = 4
    """Dropout masks per symbol and step with the fast gradient; tokens use one of them at random."""
    steps: int = 100_000
    """The most steps."""
    horizon: int | None = None
    """The step at which the cosines end; the last step by default."""
    check_every: int = 50
    """Steps between two checks on fresh words."""
    check_words: int = 512
    """Fresh words of a check."""
    stop_accuracy: float = 1.0
    """Share of a check's words that must be right for it to count towards early stopping."""
    stop_checks: int = 40
    """Consecutive checks of that accuracy after which the phase stops."""
    grow_length: bool = False
    """Train on words only as long as twice the mean first error: positions after it have almost no weight."""

    def __post_init__(self) -> None:
        _at_least_one(self, "batch", "length", "steps", "check_every", "check_words", "stop_checks", "masks")
        if self.horizon is not None and self.horizon < 1:
            raise InvalidConfig(f"horizon must be at least 1; got {self.horizon}.")
        for name in ("lr", "final_lr", "stop_accuracy"):
            if not getattr(self, name) > 0:
                raise InvalidConfig(f"{name} must be positive; got {getattr(self, name)}.")
        if self.gradient not in GRADIENTS:
            raise unknown("gradient", self.gradient, GRADIENTS)


ANSWER_STEPS = 8_000
"""The most steps of a cascade from answers; see answer_cascade.py."""
PROBED = 16
"""Labels up to which a head holds all of them ..."""
PROBED_REACHING = 64
"""... and where words reach every state: the machine of a file merges states as a group does not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GradientConfig:
    """Training end to end with a wide layer, pruning and margins; see gradient.py.

    `resolved` chooses from the number of labels what is left open.
    """

    temperature: float = 0.0
    """Of the softmax in the backward pass; 0: 2 with probes, 1 without."""
    remember: float = 1.0
    """Bias of the transition logits towards staying, at the start."""
    token_scale: float = 0.1
    """Scale of the token in the residual stream at the start: small, so that heads and not tokens carry the label."""
    probe_weight: float = -1.0
    """Weight of the losses of the probes, summed over heads; -1: 1 where every head can hold all labels, else 0."""
    batch: int = 64
    """Words per step."""
    replay: float = 0.0
    """Share of a batch that are words which were wrong at an earlier check; 0 for none."""
    length: int = 0
    """Of the longest training words; 0: 16 with probes, 32 without."""
    first_length: int = 8
    """Of the first words; they grow by a symbol ..."""
    grow_at: float = 0.9
    """... whenever more than this share of the labels of a batch is right."""
    long_length: int = 0
    """To which they grow, half as many in a batch, after checks of which nine words in ten are right; 0: no further."""
    lr: float = 3e-3
    weight_decay: float = 0.0
    mask_rate: float = 3.0
    """How fast the weight of positions after the first error decays."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    sampled_from: int = 1024
    """With more labels than this, a step compares only the labels of its batch and `negatives` others."""
    negatives: int = 512
    steps: int = 3000
    """The most steps of an attempt."""
    renew_every: int = 0
    """Steps after which heads that do not follow the state are drawn anew (`exactstate.nn.renew`), and words are short
    again; an attempt without any head that does is given up. 0 for never."""
    renew_below: float = 0.3
    """Heads of less agreement than this do not follow the state."""
    rounds: int = 3
    """How often the wide network may be trained on and pruned anew when the pruned one errs on long words."""
    more_steps: int = 150
    """The fewest steps of a later round."""
    check_every: int = 25
    check_words: int = 256
    """Fresh words of a check."""
    check_length: int = 64
    """Their length."""
    prune_steps: int = 100
    """Fine-tuning steps after a removal that made fresh words wrong."""
    prune_lr: float = 1e-3
    prune_failures: int = 2
    """Single heads that are tried in vain before pruning ends."""
    repairs: int = 60
    """Rounds of training a pruned network on the counterexamples that refuse its certificate."""
    repair_steps: int = 20
    """Steps of a round."""
    margin: float = 4.0
    """Margin of columns and read-outs that the last phase aims at; half of it ends the phase."""
    margin_steps: int = 300
    compress: bool = True
    """Whether the machine is also distilled into a network of minimal heads."""
    heads: tuple[int, ...] = ()
    """Of the wide layer; chosen by `resolved`."""

    def __post_init__(self) -> None:
        _at_least_one(
            self, "batch", "first_length", "steps", "rounds", "check_every", "check_words", "check_length",
            "prune_steps", "prune_failures", "negatives",
        )  # fmt: skip
        for name in ("lr", "prune_lr", "clip", "margin", "token_scale"):
            if not getattr(self, name) > 0:
                raise InvalidConfig(f"{name} must be positive; got {getattr(self, name)}.")

    def resolved(
        self, labels: int, heads: tuple[int, ...] | None, attempt: int = 0, *, states: bool = True,
        reaching: bool = False,
    ) -> GradientConfig:  # fmt: skip
        """The configuration for so many labels; a later attempt has half as many heads more each time.

        Outputs, unlike `states`, leave open how many states there are, and no head holds the state by itself.
        Where words are `reaching` every state, a head can hold more states, and outputs begin with half as many heads.
        """
        if heads is None:
            probed, wide = (PROBED_REACHING, WIDE[:8]) if reaching else (PROBED, WIDE)
            heads = wide_heads(labels, probed) if states else wide
        heads = heads + heads[: len(heads) * attempt // 2]
        probes = float(states and labels <= min(heads)) if self.probe_weight < 0 else self.probe_weight
        return replace(
            self, heads=heads, probe_weight=probes, temperature=self.temperature or (2.0 if probes else 1.0),
            length=self.length or (16 if probes else 32),
        )  # fmt: skip

    def reaching(self, sampler: Sampler) -> GradientConfig:
        """The configuration for words that reach every state, and checks large enough for them.

        Such words are short, because many machines end in a state that they never leave, and what follows says nothing;
        there are more of them in a batch, and some are words that were wrong before: rare transitions decide.
        """
        if not isinstance(sampler, AccessWords):
            return self
        transitions, length = sampler.machine.n_states * sampler.n_symbols, max(12, sampler.depth + 8)
        return replace(
            self, length=length, long_length=max(32, length), first_length=max(self.first_length, sampler.depth + 4),
            batch=max(self.batch, min(2 * self.batch, REACHING_TOKENS // length)), replay=0.25,
            check_words=max(self.check_words, min(2 * transitions, 2048)),
            check_length=max(self.check_length, sampler.depth + 16),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchConfig:
    """Every head alone; see search.py, and large_head.py, where only `steps` and `attempts` count."""

    lr: float = 3e-3
    """Of the network; the heads' own read-outs learn at READ_LR."""
    batch: int = 64
    """Words per step."""
    length: int = 64
    """Of the longest words."""
    check_every: int = 100
    """Steps between two readings of the heads."""
    steps: int = 2500
    """The most steps of an attempt."""
    attempts: int = 2
    """So many; those that follow are trained straight through."""

    def __post_init__(self) -> None:
        _at_least_one(self, "batch", "length", "check_every", "steps", "attempts")


EMBEDDED_FROM, EMBEDDED_HEADS = 1_000, (12,) * 16
"""States above which heads begin with label embeddings, and these heads."""
SEARCHES = ("search", "search-2", "search-3", "search-4", "large_head")
"""The phases of a search: one for every layer, or one for a large head."""
SEARCHED = (12,) * 10 + (24,) * 4 + (48,) * 2
"""Heads of a layer of which some are kept; none is larger than half as many indices more than labels."""


def search_heads(labels: int) -> tuple[int, ...]:
    """The heads of the layer in training, for so many labels."""
    if labels > EMBEDDED_FROM:
        return EMBEDDED_HEADS
    return tuple(min(size, max(4, math.ceil(1.5 * labels))) for size in SEARCHED)


MANY = 32
"""Labels above which heads that hold all of them are fewer, with less to spare: a step costs the square of a size."""
REACHING_TOKENS = 1536
"""Symbols of a batch of words that reach every state, about."""
WIDE = (12,) * 16
"""Heads of a layer that has to find its states by itself."""


def wide_heads(labels: int, probed: int = PROBED) -> tuple[int, ...]:
    """Heads for so many labels, from trials: each can hold few labels with some to spare, or many share the state."""
    if labels <= min(probed, MANY):
        return (max(12, math.ceil(1.5 * labels)),) * 8
    if labels <= probed:
        return (math.ceil(1.125 * labels),) * 4
    return WIDE if labels <= 200 else (12,) * 32


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Everything that decides how a run goes."""

    task: str
    """A task's name, or the path of a machine file."""
    cell: str = "nfsm"
    """The recurrent layer; see `exactstate.baselines.CELLS`."""
    recipe: str = "induce"
    """The recipe that this configuration comes from; for an NFSM it decides which phases are run."""
    seed: int = 42
    """Of words, initial weights and noise."""
    supervise: str = "states"
    """The label at every symbol: the `states` of the machine or its `outputs`; or `answers`, at words' ends alone."""
    heads: tuple[int, ...] | None = None
    """Indices of each head of an NFSM; chosen by the library when not given."""
    width: int = 128
    """Of the model."""
    dropout: float = 0.1
    temperature: float = 0.5
    """At which an NFSM samples its tables."""
    layers: int = 1
    """Recurrent layers of a baseline; an NFSM has one, or those that the task names."""
    channels: int = 32
    """Channels of Mamba- and the AUSSM, entries of a PD-SSM, units of a BMRU, GRU or LSTM."""
    states: int = 8
    """Entries of a channel's state, or matrices in the dictionary of a PD-SSM; a BMRU, GRU or LSTM does not use it."""
    restarts: int = 4
    """How often an NFSM may start anew with another seed when its machine is wrong, or right by too little."""
    stop: str = "certified"
    """When training an NFSM end to end stops early: `certified`, or `checks` for the paper's own rule."""
    end_to_end: EndToEndConfig = field(default_factory=EndToEndConfig)
    """Batch and length are also those of the words in which transitions are counted."""
    gradient: GradientConfig = field(default_factory=GradientConfig)
    search: SearchConfig | None = None
    """Of every head alone, where the recipe `gradient` has it."""

    def __post_init__(self) -> None:
        if self.cell not in CELLS:
            raise unknown("cell", self.cell, CELLS)
        if self.supervise not in SUPERVISION:
            raise unknown("supervision", self.supervise, SUPERVISION)
        if self.heads is not None and (not self.heads or min(self.heads) < 1):
            raise InvalidConfig(f"heads are one or more sizes of at least 1; got {self.heads}.")
        if self.cell != "nfsm" and self.heads is not None:
            raise InvalidConfig(f"heads belong to the NFSM; {self.cell} has none, leave them out.")
        if self.cell != "nfsm" and self.supervise != "states":
            raise InvalidConfig(f"{self.cell} is trained on states; leave out supervision by {self.supervise}.")
        if self.supervise == "outputs" and self.recipe == "distill":
            raise InvalidConfig("the recipe 'distill' is given states; outputs go with 'induce' and 'paper'.")
        if self.supervise == "answers" and self.recipe != "gradient":
            raise InvalidConfig(f"answers alone go with the recipe 'gradient'; {self.recipe!r} is given states.")
        if self.stop not in STOPS:
            raise unknown("stopping rule", self.stop, STOPS)
        if self.restarts < 0:
            raise InvalidConfig(f"restarts must be at least 0; got {self.restarts}.")
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed <= MAX_SEED:
            raise InvalidConfig(f"a seed is a number from 0 to 2^62 - 1; got {self.seed}.")
        _at_least_one(self, "width", "layers", "channels", "states")

    @property
    def max_steps(self) -> dict[str, int]:
        """The most steps of every phase, by its name."""
        return {
            "wide": self.gradient.steps, "end_to_end": self.end_to_end.steps,
            "cascade": ANSWER_STEPS,
            **({} if self.search is None else dict.fromkeys(SEARCHES, self.search.steps)),
        }  # fmt: skip

    def title(self, name: str) -> str:
        """What a network trained so is called; `name` is that of the task."""
        source = "" if self.supervise == "states" else f" from {self.supervise}"
        return f"{name}{source}, {self.recipe}, seed {self.seed}"

    def apply_supervision(self, task: Task) -> Task:
        """The task with the labels that this configuration trains on."""
        if self.supervise == "answers":
            return task if isinstance(task, AnswerTask) else AnswerTask.of_task(task)
        return OutputTask.of_task(task) if self.supervise == "outputs" and task.label_kind != "outputs" else task

    def adapt_to_task(self, task: Task) -> TrainConfig:
        """The configuration that a task with layers of its own needs: the paper's long stories, registers as states.

        `induce` is given the registers of the task as supervision, so that such a run is recorded as `distill`.
        """
        if task.layers is None or self.cell != "nfsm":
            return self
        if self.heads is not None:
            raise InvalidConfig(
                f"{task.name} takes layers of {' and '.join(str(len(heads)) for heads in task.layers)} heads, "
                f"and their sizes are given; got heads {self.heads}. Leave them out."
            )
        end_to_end = self.end_to_end
        if end_to_end == EndToEndConfig():
            end_to_end = replace(end_to_end, batch=64, length=256)
        recipe = "distill" if self.recipe == "induce" else self.recipe
        return replace(self, recipe=recipe, end_to_end=end_to_end)

    def compressed(self) -> TrainConfig:
        """How the network of minimal heads is built and trained that `gradient` distills its machine into."""
        return replace(self, heads=None, dropout=0.1, temperature=0.5)

    def with_attempt_seed(self, attempt: int) -> TrainConfig:
        """The same with the seed of a later attempt."""
        return self if attempt == 0 else replace(self, seed=self.seed + 1_000 * attempt)

    def to_json(self) -> dict[str, Any]:
        """As JSON holds it."""
        content: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return content

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> TrainConfig:
        """What `to_json` returned."""
        known = {one.name for one in fields(cls)}
        if not isinstance(content, dict) or not set(content) <= known:
            raise TypeError(f"{', '.join(sorted(set(content) - known))}: no such setting")
        parts: dict[str, Any] = dict(content)
        parts["end_to_end"] = EndToEndConfig(**content["end_to_end"])
        parts["gradient"] = GradientConfig(**{**content["gradient"], "heads": tuple(content["gradient"]["heads"])})
        search = content.get("search")
        parts["search"] = None if search is None else SearchConfig(**search)
        parts["heads"] = None if content["heads"] is None else tuple(content["heads"])
        return cls(**parts)

    def save(self, path: Path) -> None:
        write_atomically(path, json.dumps(self.to_json(), indent=2) + "\n")
