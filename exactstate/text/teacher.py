"""Machines read out of a recurrent teacher: one for every question that texts ask, by asking the teacher.

    B  batch     L  length     V  vocabulary     n  states     C  commands     W  suffixes

A GRU or LSTM that has learned texts knows what comes next; its mistakes grow with the length, and what it answers after
a few commands is mostly right. So it is asked after few commands, often, and the majority decides: the machines can be
exact where the teacher is not. As in L*, a state is what is answered after a few suffixes (Angluin 1987; of RNNs: Weiss
et al. 2018), here once for every question alone, which is a head of its own and knows no more than it needs:

1. A *question* is a context after which the teacher knows the next token much better than the last three tokens do.
2. A *command* is what stands between two places where all questions may follow.
3. The *signature* of a place is what the teacher would answer to the question, now and after each suffix. Where one
   command leads from one signature to several, what tells them apart becomes a suffix.
4. Transitions are counted: those of texts, and those of commands that are appended where texts show too few.
"""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exactstate._types import MISSING, Ints
from exactstate.automata import Moore, minimize
from exactstate.text.memory import Machine, Words
from exactstate.text.model import TextModel

KNOWN = 0.6
"""Share of the nats that three tokens leave open which a teacher must know for a context to be a question."""
PLAUSIBLE = 0.2
"""A token may follow where its probability is more than this share of what it is where it does follow."""
TEXTS, EARLY = 400, 18
"""Places in so many texts, up to so many tokens, are asked."""
UNLIKELY = 0.003
"""No probability counts for less."""
SURE = 0.6
"""The least probability of an answer that counts."""
NOISE = 0.2
"""How often two answers may differ without a reason."""
OFTEN = 3
"""Places of a signature that is no mistake."""
STATES, SUFFIXES = 400, 8
"""More states of a machine, and more suffixes, are not looked for."""
CLEAR = 0.87
"""Share of the places of known states at which an answer after one more suffix is to be known, too."""
NEWS = 0.12
"""Share of places at which an answer after one more suffix is another than all known ones."""
VOTES = 32
"""Transitions to be seen for every state and command, if there is time."""


class Teacher:
    """A recurrent `TextModel` that is asked in batches. A place is a row: its state, and what may follow (V)."""

    def __init__(self, model: TextModel) -> None:
        self.model, self.vocabulary = model.eval(), model.vocabulary
        self._block: Any = model.blocks[0]

    def start(self, batch: int) -> Tensor:
        """Places before the first token, after which anything may follow."""
        last, cell = self._block.conv.initial_state(batch), self._block.block.initial_state(batch)
        return torch.cat([last.flatten(1), cell.flatten(1), torch.ones(batch, self.vocabulary)], 1)

    @torch.no_grad()
    def step(self, places: Tensor, tokens: Tensor) -> Tensor:
        """The places after one token each."""
        k, m = self._block.conv.kernel_size - 1, self.model.width
        last, cell, _ = places.split([k * m, places.shape[1] - k * m - self.vocabulary, self.vocabulary], 1)
        cell = cell.reshape(-1, *self._block.block.initial_state(1).shape[1:])
        logits, (after,) = self.model.run(tokens[:, None], [(last.reshape(-1, k, m), cell)])
        return torch.cat([*(part.flatten(1) for part in after), logits[:, 0].softmax(-1)], 1)  # type: ignore[union-attr]

    def after(self, places: Tensor, words: Words) -> tuple[Tensor, Tensor]:
        """(the places after these words, the probability of each word there: P |words|)."""
        likely = []
        for word in words:
            likely.append(self.chances(places)[:, word])
            places = self.step(places, torch.full((len(places),), word))
        return places, torch.stack(likely, 1) if likely else places.new_ones(len(places), 0)

    def chances(self, places: Tensor) -> Tensor:
        """P V: of the next token."""
        return places[..., -self.vocabulary :]


def grams(tokens: Ints, k: int, vocabulary: int) -> Ints:
    """B L: a number for the last k tokens at every place; MISSING where there are fewer."""
    key = np.zeros_like(tokens)
    for back in range(k):
        shifted = np.full_like(tokens, MISSING)
        shifted[:, back:] = tokens[:, : tokens.shape[1] - back]
        key = np.where((shifted == MISSING) | (key == MISSING), MISSING, key + (shifted + 0) * vocabulary**back)
    return key


def find_questions(tokens: Ints, nats: Ints, vocabulary: int) -> list[Words]:
    """Contexts after which the next token follows from the state: from texts, and what the teacher's answers cost.

    `nats` (B early): minus the logarithm of the probability of the token after each of the first places.
    """
    early = nats.shape[1]
    three, after = grams(tokens, 3, vocabulary)[:, :-1], tokens[:, 1:]
    full = three != MISSING
    context, where = np.unique(three[full], return_inverse=True)
    counts = np.zeros((len(context), vocabulary))
    np.add.at(counts, (where, after[full]), 1)
    shares = counts / counts.sum(1, keepdims=True)
    open_nats = -(shares * np.log(np.maximum(shares, 1e-12))).sum(1)
    asked = np.full(three.shape, np.nan)
    asked[full] = open_nats[where]
    asked, spent = asked[: len(nats), :early], nats
    seen = ~np.isnan(asked)

    def known(chosen: np.ndarray) -> tuple[float, float]:
        """(nats that three tokens leave open, share of it that the teacher knows)."""
        open_here = asked[chosen & seen]
        if len(open_here) < 20:
            return 0.0, 0.0
        mean = float(open_here.mean())
        return mean, 1.0 - float(spent[chosen & seen].mean()) / max(mean, 1e-9)

    found: list[Words] = []
    keys = {k: grams(tokens, k, vocabulary)[: len(nats), :early] for k in (1, 2, 3, 4)}
    for k in (1, 2, 3):
        for key in np.unique(keys[k][keys[k] != MISSING]).tolist():
            words = tuple((key // vocabulary**back) % vocabulary for back in reversed(range(k)))
            if any(words[-len(one) :] == one for one in found):
                continue
            chosen = keys[k] == key
            nats_open, share = known(chosen)
            if nats_open < 0.2 or share < KNOWN:
                continue
            longer = [known(chosen & (keys[k + 1] == more)) for more in np.unique(keys[k + 1][chosen])]
            if all(part >= KNOWN - 0.25 for amount, part in longer if amount >= 0.2):
                found.append(words)
    return found


def find_commands(tokens: Ints, boundary: np.ndarray) -> list[Words]:
    """What stands between boundaries, the most frequent first; no command begins with another."""
    seen: Counter[Words] = Counter()
    for text, ends in zip(tokens.tolist(), boundary, strict=True):
        cuts = [0, *(np.flatnonzero(ends) + 1).tolist()]
        seen.update(tuple(text[a:b]) for a, b in pairwise(cuts))
    chosen: list[Words] = []
    for words, count in seen.most_common():
        clash = any(words[: len(one)] == one or one[: len(words)] == words for one in chosen)
        if count >= 5 and not clash and len(words) <= 12:
            chosen.append(words)
    return chosen


class Reader:
    """Places in texts, the commands between them, and what the teacher would answer there."""

    def __init__(self, teacher: Teacher, tokens: Tensor) -> None:
        self.teacher = teacher
        early = tokens[:TEXTS, :EARLY]
        walk = [teacher.start(len(early))]
        for t in range(early.shape[1]):
            walk.append(teacher.step(walk[-1], early[:, t]))
        places = torch.stack(walk, 1)
        chances = teacher.chances(places)[:, 1:]
        spent = -chances[:, :-1].gather(2, early[:, 1:, None])[..., 0].clamp(min=1e-9).log().numpy()
        self.questions = find_questions(tokens.numpy(), spent, teacher.vocabulary)
        first = sorted({words[0] for words in self.questions})
        boundary = np.full(early.shape, bool(first))
        for word in first:
            likely = chances[..., word]
            boundary &= (likely > PLAUSIBLE * likely.flatten().quantile(0.9)).numpy()
        self.commands = find_commands(early.numpy(), boundary)
        number = {words: n for n, words in enumerate(self.commands)}
        kept, steps = [places[:1, 0]], []
        self.read = [0]
        found: list[list[Tensor]] = [[] for _ in self.commands]
        count = 1
        for b, (text, ends) in enumerate(zip(early.tolist(), boundary, strict=True)):
            at = 0
            for one, other in pairwise([0, *(np.flatnonzero(ends) + 1).tolist()]):
                c = number.get(tuple(text[one:other]))
                kept.append(places[b : b + 1, other])
                self.read.append(other)
                if c is not None:
                    steps.append((at, c, count))
                    if one:
                        found[c].append(chances[b, range(one - 1, other - 1), text[one:other]])
                at, count = count, count + 1
        self.places, self.steps = torch.cat(kept), np.array(steps, np.int64).reshape(-1, 3)
        self.usual = [torch.stack(rows).mean(0) if rows else None for rows in found]
        self.known: dict[Words, Tensor] = {}

    def machines(self, seconds: float) -> list[Machine]:
        """Of all questions, but of those that an earlier one answers as well."""
        found: list[Machine] = []
        for k, question in enumerate(self.questions):
            began = time.process_time()
            one = self.machine(question, seconds / (len(self.questions) - k))
            seconds -= time.process_time() - began
            found += [] if one is None or len(one.outputs) < 2 else [one]
        return without_quotients(found)

    def answers(self, words: Words) -> Tensor:
        """P V: the logarithm of the probability of every token after these words, at all places."""
        old = self.known.get(words, self.places.new_empty(0, self.teacher.vocabulary))
        if len(old) < len(self.places):
            new = self.teacher.chances(self.teacher.after(self.places[len(old) :], words)[0])
            self.known[words] = torch.cat([old, new.clamp(min=UNLIKELY).log()])
        return self.known[words]

    def machine(self, question: Words, seconds: float) -> Machine | None:
        """Of one question; None where it has too many states."""
        until, tried, votes = time.process_time() + seconds, set[tuple[int, int]](), 2
        noise = set[tuple[int, int]]()
        suffixes: list[Words] = [()]
        while True:
            signatures, state = self.states(question, suffixes)
            if not len(signatures) or len(signatures) > STATES:
                return None
            late = time.process_time() > until
            apart = {} if len(suffixes) == SUFFIXES or late else self.disagreement(question, suffixes, state)
            open_cells = [cell for cell, share in apart.items() if share > NOISE and cell not in noise]
            if open_cells:  # the shortest suffix first: the teacher errs after long ones
                worst = min(open_cells, key=lambda one: (len(self.commands[one[0]] + suffixes[one[1]]), -apart[one]))
                longer = [*suffixes, self.commands[worst[0]] + suffixes[worst[1]]]
                finer = self.states(question, longer)[1]
                words = [self.answers(suffix + question).argmax(1) for suffix in longer]
                news = min(float((words[-1] != one).float().mean()) for one in words[:-1])
                blurred = (finer != MISSING).mean() < CLEAR * (state != MISSING).mean()
                left = self.disagreement(question, longer, finer).get(worst, 1.0)
                if not blurred and news > NEWS and left < apart[worst] / 2:
                    suffixes = longer
                else:
                    noise.add(worst)
            elif late or votes > VOTES:
                break
            elif not self.explore(state, len(signatures), tried, votes):
                votes *= 2
        n = len(signatures)
        columns = [self.answers(suffix + question)[:, signatures[:, w]] for w, suffix in enumerate(suffixes)]
        likely = torch.stack(columns).sum(0).softmax(1)
        before, c, after = self.steps[state[self.steps[:, 0]] != MISSING].T
        votes_for = torch.zeros(len(self.commands) * n, n)
        votes_for.index_add_(0, torch.from_numpy(c * n + state[before]), likely[after])
        most, to = votes_for.view(-1, n, n).max(2)
        tables = np.where(most.numpy() > 0, to.numpy(), np.arange(n))
        return reduced(Machine(question, tables, signatures[:, 0], int(likely[0].argmax())))

    def states(self, question: Words, suffixes: list[Words]) -> tuple[Ints, Ints]:
        """(common signatures: n W; which one a place has: P, MISSING for others and where the teacher is not sure)."""
        known = [self.answers(suffix + question).max(1) for suffix in suffixes]
        sure = torch.stack([one.values > np.log(SURE) for one in known], 1).all(1).numpy()
        words = torch.stack([one.indices for one in known], 1).numpy()
        signatures, number, often = np.unique(words[sure], axis=0, return_inverse=True, return_counts=True)
        common = often >= OFTEN
        state = np.full(len(words), MISSING)
        state[sure] = np.where(common, common.cumsum() - 1, MISSING)[number.ravel()]
        return signatures[common], state

    def disagreement(self, question: Words, suffixes: list[Words], state: Ints) -> dict[tuple[int, int], float]:
        """For commands and suffixes: how often two answers after the command differ, from places of one state."""
        sure = state != MISSING
        before, c, after = self.steps[sure[self.steps[:, 0]]].T
        cells, at, sizes = np.unique(np.stack([c, state[before]], 1), axis=0, return_inverse=True, return_counts=True)
        pairs = np.bincount(cells[:, 0], sizes - 1, len(self.commands))
        found = {}
        for w, suffix in enumerate(suffixes):
            word = self.answers(suffix + question).argmax(1).numpy()[after]
            kinds, many = np.unique(np.stack([at.ravel(), word], 1), axis=0, return_counts=True)
            alike = np.bincount(kinds[:, 0], many * (many - 1), len(cells)) / sizes
            differ = np.bincount(cells[:, 0], sizes - 1 - alike, len(self.commands))
            found.update({(n, w): float(differ[n] / pairs[n]) for n in np.flatnonzero(pairs >= 15).tolist()})
        return found

    def explore(self, state: Ints, n: int, tried: set[tuple[int, int]], votes: int) -> bool:
        """Append commands at places of states with few steps, each place and command once; whether there were any."""
        before, c, _ = self.steps[state[self.steps[:, 0]] != MISSING].T
        seen = np.bincount(c * n + state[before], minlength=len(self.commands) * n).reshape(-1, n)
        order = np.lexsort((np.array(self.read), state))  # the shortest first
        members = np.split(order, np.searchsorted(state[order], np.arange(n)))[1:]
        found = False
        for c, words in enumerate(self.commands):
            usual = self.usual[c]
            if usual is None:
                continue
            chosen = [
                at for n in np.flatnonzero(seen[c] < votes) for at in members[n][: votes - seen[c, n]].tolist()
                if (c, at) not in tried
            ]  # fmt: skip
            if not chosen:
                continue
            tried.update((c, at) for at in chosen)
            places, likely = self.teacher.after(self.places[chosen], words)
            may = (likely > PLAUSIBLE * usual).all(1)
            begins = np.array(chosen)[may.numpy()]
            ends = len(self.places) + np.arange(len(begins))
            self.places = torch.cat([self.places, places[may]])
            self.read += [self.read[at] + len(words) for at in begins.tolist()]
            self.steps = np.concatenate([self.steps, np.column_stack([begins, np.full(len(begins), c), ends])])
            found |= bool(len(begins))
        return found


def reduced(machine: Machine) -> Machine:
    """The states that are reached, those with the same answers after all commands being one."""
    tokens, answer = np.unique(machine.outputs, return_inverse=True)
    names = (tuple(map(str, range(len(machine.tables)))), tuple(map(str, tokens.tolist())))
    small = minimize(
        Moore(symbols=names[0], tables=machine.tables, outputs=names[1], readout=answer, start=machine.start)
    )
    return Machine(machine.question, small.tables, tokens[small.readout], small.start)


def without_quotients(machines: list[Machine]) -> list[Machine]:
    """Those whose state does not follow from that of another one."""
    kept: list[Machine] = []
    for one in sorted(machines, key=lambda machine: -len(machine.outputs)):
        if not any(follows(one, other) for other in kept):
            kept.append(one)
    return kept


def follows(one: Machine, other: Machine) -> bool:
    """Whether the state of one machine is a function of that of another one."""
    state = {other.start: one.start}
    queue = [other.start]
    for n in queue:
        for c in range(len(one.tables)):
            to, mine = int(other.tables[c, n]), int(one.tables[c, state[n]])
            if to not in state:
                state[to] = mine
                queue.append(to)
            elif state[to] != mine:
                return False
    return True
