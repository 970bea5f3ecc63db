"""Tracking Shuffled Objects by gradient: two layers, stories, no registers given.

    B  stories     L  tokens     n  states

The labels are the machine's state at every token and the answer at the end, or the answer alone. Two forms:

- `cascade`: the recipe `gradient`. Heads are learned from states layer by layer (`exactstate/train/search.py`), from
  answers two layers at once (`exactstate/train/answer_cascade.py`), and realized in a network.
- `wide`: two wide layers are trained end to end. Stories begin with no swap and gain a sentence whenever most labels
  of a batch are right. The network is pruned.

Either network is extracted along the grammar of stories and certified.
"""

from __future__ import annotations

import time
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from exactstate import NFSM
from exactstate.errors import BudgetExceeded, InvalidConfig, NotLearned
from exactstate.extract import Budget
from exactstate.nn import Backbone
from exactstate.nn.losses import record_calls
from exactstate.nn.pruning import prune
from exactstate.records import Row
from exactstate.tasks import Task
from exactstate.tasks import task as get_task
from exactstate.tasks.shuffled_objects import SENTENCE
from exactstate.train import configure, train
from exactstate.train.margins import margin_shortfall
from exactstate.train.verify import extract_and_certify, make_certificate

WIDTH, HEADS, BATCH, LR, CHECK_EVERY = 64, (12,) * 16, 64, 3e-3, 50
GROW_AT = 0.9
"""Stories gain a sentence when more than this share of the labels of a batch is right."""
SWAPS, CHECK_SENTENCES = 12, 40
"""The most swaps of a story in training, and the sentences of a story in a check."""
MARGIN, MARGIN_STEPS, MARGIN_PARTS, MARGIN_LR, MARGIN_STORIES = 1.0, 40, 10, 3e-4, 64
"""Margins are widened in parts of so many steps, as long as fresh stories stay right."""
ROUNDS, ROUND_SECONDS = 3, 12.0
"""Attempts at a certificate, and the CPU seconds of training between two."""
SUPERVISION = ("states", "answers")
FORMS = ("cascade", "wide")
BUDGET = Budget(configurations=100_000, seconds=120.0)
"""Of an extraction."""


class Stories:
    """Batches of stories about a task, with their labels."""

    def __init__(self, task: Task, supervision: str, generator: np.random.Generator) -> None:
        if task.question is None:
            raise InvalidConfig(f"{task.name} asks no question; stories are those of TSO3, TSO4 and TSO5.")
        if supervision not in SUPERVISION:
            raise InvalidConfig(f"supervision is one of {', '.join(SUPERVISION)}; got {supervision!r}.")
        self.task, self.question, self.generator = task, task.question, generator
        self.by_state = supervision == "states"
        self.fewest = task.question.n_answers + 1
        """Sentences of the shortest story."""

    def sample(self, batch: int, sentences: int, extra: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """(tokens: B L, states: B L, answers: B), of stories with so many extra dots; at most four, if not given."""
        if extra is None:
            extra = int(self.generator.integers(0, min(SENTENCE, sentences)))
        drawn = self.task.sample(batch, SENTENCE * sentences + extra, self.generator)
        answers = self.question.answer(self.question.query(drawn.inputs[:, -2:]), drawn.states[:, -1])
        tokens, states, wanted = (np.asarray(array).astype(np.int64) for array in (drawn.inputs, drawn.states, answers))
        return torch.from_numpy(tokens), torch.from_numpy(states), torch.from_numpy(wanted)

    def loss(self, model: Backbone, sentences: int) -> tuple[Tensor, float]:
        """(loss, share of right labels) of a fresh batch."""
        tokens, states, answers = self.sample(BATCH, sentences)
        h, _ = model.hidden(tokens)
        scores = model.answer_logits(h[:, -1])
        loss, right = cross_entropy(scores, answers), scores.detach().argmax(-1) == answers
        if not self.by_state:
            return loss, float(right.float().mean())
        logits = model.label_logits(h)
        loss = 0.1 * loss + cross_entropy(logits.flatten(0, 1), states.flatten())
        return loss, float((logits.detach().argmax(-1) == states).float().mean())

    @torch.no_grad()
    def check(self, model: Backbone, stories: int = 128, sentences: int = CHECK_SENTENCES) -> tuple[float, float]:
        """(share of fresh stories that are right throughout, mean number of tokens before the first wrong state)."""
        tokens, states, answers = self.sample(stories, sentences)
        h, _ = model.eval().hidden(tokens)
        right = model.answer_logits(h[:, -1]).argmax(-1) == answers
        if not self.by_state:
            return float(right.float().mean()), float("nan")
        wrong = model.label_logits(h).argmax(-1) != states
        before = torch.where(wrong.any(1), wrong.int().argmax(1), wrong.shape[1])
        return float((right & ~wrong.any(1)).float().mean()), float(before.float().mean())


def fit(model: Backbone, stories: Stories, *, seconds: float, lr: float = LR, sentences: int = 0) -> Row:
    """Train until fresh long stories are right or the CPU seconds are used up; how far it came."""
    optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=0.0, fused=True)
    started, steps, most = time.process_time(), 0, stories.fewest + SWAPS
    sentences = sentences or stories.fewest
    right, before = 0.0, 0.0
    while right < 1.0 and time.process_time() - started < seconds:
        loss, share = stories.loss(model.train(), sentences)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps, sentences = steps + 1, min(most, sentences + (share > GROW_AT))
        if steps % CHECK_EVERY == 0:
            right, before = stories.check(model)
            if right == 1.0:  # a second, longer look
                right, before = stories.check(model, 64, 8 * CHECK_SENTENCES)
    return {
        "steps": steps, "learned": right == 1.0, "stories_right": round(right, 4),
        "first_error": round(before, 1) if stories.by_state else None, "sentences": sentences,
        "learning_seconds": round(time.process_time() - started, 1),
    }  # fmt: skip


def shrink(model: Backbone, stories: Stories) -> Backbone:
    """The model without heads that fresh stories do not need."""
    tokens, states, answers = stories.sample(BATCH, stories.fewest + SWAPS)

    @torch.no_grad()
    def loss(smaller: Backbone) -> float:
        h, _ = smaller.eval().hidden(tokens)
        asked = cross_entropy(smaller.answer_logits(h[:, -1]), answers)
        every = cross_entropy(smaller.label_logits(h).flatten(0, 1), states.flatten()) if stories.by_state else 0.0
        return float(asked + every)

    def accept(smaller: Backbone) -> bool:
        return all(stories.check(smaller, count, length)[0] == 1.0 for count, length in ((256, 40), (64, 320)))

    def fine_tune(smaller: Backbone) -> None:
        fit(smaller, stories, seconds=10.0, lr=LR / 3, sentences=stories.fewest + SWAPS)

    return prune(model, tokens, loss=loss, accept=accept, fine_tune=fine_tune, max_failures=2).eval()


def widest(model: Backbone, stories: Stories) -> Backbone:
    """The model with wider margins, as far as fresh stories stay right throughout."""
    wider = deepcopy(model)
    for _ in range(MARGIN_PARTS):
        widen_margins(wider, stories)
        if any(stories.check(wider, count, length)[0] < 1.0 for count, length in ((256, 40), (32, 320))):
            break
        model = deepcopy(wider)
    return model.eval()


def widen_margins(model: Backbone, stories: Stories) -> None:
    """Enlarge the margins of the columns and states that fresh stories use, so that they exceed rounding.

    A squared hinge on the lead of the index that the network goes to now over every other one, and of the right state
    and answer: where the lead is large there is no gradient.
    """
    fixed = deepcopy(model).eval()
    optimizer = torch.optim.AdamW(model.parameters(), MARGIN_LR, weight_decay=0.0, fused=True)
    for step in range(MARGIN_STEPS):
        tokens, states, answers = stories.sample(MARGIN_STORIES, stories.fewest + step % SWAPS)
        with torch.no_grad(), record_calls(fixed) as wanted:
            fixed.hidden(tokens)
        with record_calls(model) as calls:
            h, _ = model.hidden(tokens)
        lacking = [
            margin_shortfall(model.label_logits(h).flatten(0, 1), states.flatten(), MARGIN),
            margin_shortfall(model.answer_logits(h[:, -1]), answers, MARGIN),
        ]
        for call, goal in zip(calls, wanted, strict=True):
            after = goal.block.states(goal.rows)  # B L r
            before = torch.cat([goal.block.initial_state(len(after))[:, None], after[:, :-1]], 1)
            for head, logits in enumerate(call.block.logits(call.rows)):
                column = before[..., head, None, None].expand(*logits.shape[:-1], 1)
                used = logits.gather(-1, column).squeeze(-1).flatten(0, 1)
                lacking.append(margin_shortfall(used, after[..., head].flatten(), MARGIN))
        optimizer.zero_grad(set_to_none=True)
        torch.stack([part.square().sum() for part in lacking]).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def story_learning_row(name: str, supervision: str, seed: int, seconds: float) -> Row:
    """Learn a task of stories by gradient, prune, extract and certify it; its row."""
    started = time.process_time()
    torch.manual_seed(seed)
    task = get_task(name)
    stories = Stories(task, supervision, np.random.default_rng(seed))
    layers: list[nn.Module] = [NFSM(WIDTH, HEADS, dictionary=None) for _ in range(2)]
    model = Backbone(task.machine.n_symbols, task.machine.n_states, layers, width=WIDTH, dropout=0.0, kernel_size=2,
                     answers=stories.question.n_answers)  # fmt: skip
    row: Row = {
        "task": name, "supervision": supervision, "seed": seed, "budget_seconds": seconds,
        "states": task.machine.n_states, "learned_heads": [list(HEADS), list(HEADS)],
        **fit(model, stories, seconds=seconds), "certified": False, "heads": None, "reached": None, "verdict": None,
        "proved": [], "threads": torch.get_num_threads(),
    }  # fmt: skip
    if not row["learned"]:
        row["verdict"] = f"not learned in {seconds:g} s"
    else:
        model = shrink(model, stories)
        row["heads"] = [list(layer.block.heads) for layer in model.layers]  # type: ignore[arg-type, union-attr]
        if stories.by_state:
            row |= certified(model, task, stories)
    return {**row, "cpu_seconds": round(time.process_time() - started, 1)}


def certified(model: Backbone, task: Task, stories: Stories) -> Row:
    """The verdict on a network that gives states and answers, and the formats in which rounding is proved.

    Margins are widened first. After a refusal the network is trained on, on stories of every length, and tried again.
    """
    for attempt in range(ROUNDS):
        if attempt:
            for sentences in range(stories.fewest, stories.fewest + SWAPS):
                fit(model, stories, seconds=ROUND_SECONDS / SWAPS, lr=LR / 10, sentences=sentences)
        tried = widest(model, stories)
        try:
            extracted, verdict = extract_and_certify(tried, task, BUDGET.restarted())
        except BudgetExceeded as error:
            return {"verdict": str(error), "rounds": attempt + 1}
        if verdict:
            break
    certificate = make_certificate(tried, extracted, verdict, title=task.name) if verdict else None
    return {
        "certified": bool(verdict), "verdict": verdict.explain(), "reached": len(extracted.reached),
        "rounds": attempt + 1, "column_margin": round(float(extracted.weakest.margin), 4),
        "label_margin": round(float(extracted.label_margins.min()), 4),
        "proved": [] if certificate is None else list(certificate.proved),
        "certificate": None if certificate is None else certificate.sha256,
    }  # fmt: skip


def cascade_row(name: str, supervision: str, seed: int) -> Row:
    """Learn a task of stories by the recipe `gradient`, as a cascade; its row."""
    started = time.process_time()
    key: Row = {"task": name, "supervision": supervision, "form": "cascade", "recipe": "gradient", "seed": seed}
    try:
        run = train(configure(name, recipe="gradient", seed=seed, supervise=supervision))
    except NotLearned as error:
        spent = round(time.process_time() - started, 1)
        return {**key, "learned": False, "certified": False, "verdict": str(error), "cpu_seconds": spent}
    certificate = run.certificate() if run.certified else None
    return {
        **key, "states": run.task.machine.n_states, "learned": True, "steps": run.steps, "restarts": run.restarts,
        "search_steps": run.steps - run.last_state["steps"],
        "heads": [list(layer) for layer in run.extracted.heads], "certified": run.certified,
        "verdict": run.verdict.explain(), "reached": len(run.extracted.reached),
        "column_margin": round(float(run.extracted.weakest.margin), 4),
        "label_margin": round(float(run.extracted.label_margins.min()), 4) if supervision == "states" else None,
        "proved": [] if certificate is None else list(certificate.proved),
        "certificate": None if certificate is None else certificate.sha256, "threads": torch.get_num_threads(),
        "cpu_seconds": round(time.process_time() - started, 1),
    }  # fmt: skip
