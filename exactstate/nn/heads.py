"""Every head alone: read-outs and likelihoods of their own for the heads of an NFSM layer, and how heads are kept.

    B  words     L  their length     V  distinct inputs     r  heads     d  indices of a head     n  labels

A head runs on distributions over its indices (`exactstate.nn.soft`); each index predicts a distribution over labels,
and the loss of the head is the likelihood of the label under their mixture, as in a hidden Markov model. So heads do
not share the state in a code that breaks at the next symbol: each is rewarded for what it can follow alone, and a
mixture is certain only where its indices agree, so that states become exact without a schedule.

    heads = HeadReadouts(model.nfsm, labels=120)
    optimizer = torch.optim.Adam([{"params": model.parameters()}, {"params": heads.parameters(), "lr": 0.1}], 0.003)
    while not heads.learned:
        rows = model.embed(symbols)                        # what the layer reads at every symbol: V m
        loss = heads((rows, words), states).sum()          # then backward, and a step of the optimizer
        if step % 100 == 0:
            heads.keep(rows, words_and_states, optimizer)  # heads that follow a part of the state exactly are kept
    model.nfsm = heads.kept_layer(rows)                    # the kept heads alone, with the indices that they use

`keep` runs the arg max tables on words. Indices of a head that occur with the same label are one, and so are those to
which an input leads from there: what remains follows the label exactly. The head that tells most about the label is
kept, then the next that adds to it. The tables of kept heads stay, though what the layer reads may
go on changing: `kept_layer` lets the weights follow. The other heads are drawn anew and predict the label *given* what
is kept, so that nothing is rewarded twice; only those of more than SMALL indices go on to predict the label itself, as
long as they tell more than what is kept: a cycle is learned from its easy factors on, and they must not be taken away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exactstate._types import MISSING, Ints
from exactstate.errors import InvalidInput
from exactstate.nn.nfsm import NFSM
from exactstate.nn.pruning import select_indices
from exactstate.nn.soft import soft_states
from exactstate.ops.tables import entry_offsets, offsets, one_hot

SMALL = 12
"""Indices up to which a head is drawn with a large bias towards staying, and learns what others leave open."""
USELESS = 0.1
"""Nats that a larger head must tell beside what is kept, or it is drawn anew as well."""
TINY = 1e-9
"""Added to likelihoods."""
CERTAIN = 1e-9
"""Nats below which labels are told apart."""
GAIN = 0.03
"""Nats by which a head must reduce the entropy of the label to be kept, or by half of it."""
NEAR = 0.2
"""Nats by which the loss of a head that is kept may exceed the least: a head that holds an easy part of the state would
take away what leads the others to the rest."""


@dataclass(frozen=True, eq=False)
class KeptHead:
    """A head that follows a part of the state exactly, on all words by which it was read."""

    tables: Ints
    """V d: the index after every input, at every index; MISSING where no word shows it."""
    of_label: Ints
    """n: the index at every label, MISSING for labels that no word shows."""
    start: int
    """The index before the first input."""
    indices: tuple[int, ...]
    """For every index, that of the layer's head which it is."""

    @property
    def size(self) -> int:
        """How many indices there are."""
        return len(self.indices)

    def to_json(self) -> dict[str, Any]:
        """As a checkpoint holds it."""
        return {"tables": self.tables.tolist(), "of_label": self.of_label.tolist(), "start": self.start,
                "indices": list(self.indices)}  # fmt: skip

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> KeptHead:
        """What `to_json` returned."""
        tables, of_label = (np.array(content[name], np.int64) for name in ("tables", "of_label"))
        return cls(tables, of_label, content["start"], tuple(content["indices"]))


class HeadReadouts(nn.Module):
    """A read-out for every head of a layer, and the heads that are kept."""

    def __init__(
        self, layer: NFSM, labels: int, *, inputs: int | None = None, remember: float | None = None,
        start_label: int | None = None, generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        """Draws the tables of the layer anew.

        - `inputs`: how many distinct inputs there are, where the index before an input and the input decide the label,
          as the output of a Mealy machine; by default the index after it does.
        - `remember`: the bias of the logits that keep an index where it is; by default 6 for heads of up to SMALL
          indices, 2 for larger ones. Soft states leak: at 6 an untrained head of eight indices forgets half of what it
          holds in about 25 steps, at 2 in about one. Cycles, which take large heads, are learned with less.
        - `start_label`: the label before the first symbol, where it is known.
        """
        super().__init__()
        self._layer = (layer,)  # not a submodule: its parameters are those of the model
        self.labels, self.remember, self.start_label, self.generator = labels, remember, start_label, generator
        self.inputs = inputs
        self.readout = nn.Parameter(torch.empty(labels, inputs or 1, sum(layer.heads)))
        """n V S, or n 1 S: the logits of every label."""
        self.kept: dict[int, KeptHead] = {}
        """By their number in the layer, the first one kept first."""
        self.open = float("inf")
        """Nats of the label that the kept heads leave open, on the words of the last reading."""
        self.given: Ints = np.zeros(labels, np.int64)
        """n: labels that have the same number here are not told apart by what is known otherwise."""
        self.draw(range(len(layer.heads)))

    @property
    def layer(self) -> NFSM:
        """Whose heads they are."""
        return self._layer[0]

    @property
    def learned(self) -> bool:
        """Whether the kept heads tell all labels apart that the last reading saw."""
        return self.open < CERTAIN

    @property
    def training_heads(self) -> list[int]:
        """Those that are not kept."""
        return [h for h in range(len(self.layer.heads)) if h not in self.kept]

    @property
    def groups(self) -> Ints:
        """n: labels that neither kept heads nor what is given tell apart have the same number."""
        groups = self.given
        for head in self.kept.values():
            groups = refined(groups, head.of_label)
        return groups

    @torch.no_grad()
    def draw(self, heads: Iterable[int], optimizer: torch.optim.Optimizer | None = None) -> None:
        """Draw the tables and read-outs of these heads; the optimizer begins anew with those of all heads."""
        layer, generator = self.layer, self.generator
        entries, places, m = entry_offsets(layer.heads), offsets(layer.heads), layer.weight.shape[1]
        for h in heads:
            d = layer.heads[h]
            logits, values = slice(entries[h], entries[h] + d * d), slice(places[h], places[h] + d)
            stay = self.remember if self.remember is not None else 6.0 if d <= SMALL else 2.0
            layer.weight[logits] = m**-0.5 * torch.randn(d * d, m, generator=generator).to(layer.weight)
            layer.bias[logits] = stay * torch.eye(d).flatten().to(layer.bias)
            drawn = torch.randn(self.labels, self.inputs or 1, d, generator=generator)
            self.readout[..., values] = 0.5 * drawn.to(self.readout)
        for parameter in (layer.weight, layer.bias, self.readout):
            if optimizer is not None:  # with old counts of steps, the first steps of new moments would be large
                optimizer.state.pop(parameter, None)

    def forward(
        self, x: tuple[Tensor, Tensor] | Tensor, labels: Tensor, *, given: bool = False,
        weights: Tensor | None = None, states: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """One number for every head that is not kept: minus the log-likelihood of the labels.

        Given what is kept, for all heads with `given`, else for those of up to SMALL indices.

        - `x`: what the layer reads: `(rows, index)`, the distinct inputs (V m) and which stands where (B L); or B L m.
        - `labels`: B L, MISSING where there is none.
        - `weights`: n, of every label in the mean; by default all are alike.
        - `states`: what `soft` gives for x, where it is known.
        """
        layer, active = self.layer, self.training_heads
        rows, index = x if isinstance(x, tuple) else (x, None)
        if not active:
            return rows.new_zeros(0)
        states = self.soft(x) if states is None else states
        sizes = [layer.heads[h] for h in active]
        readout = self.readout[..., self._places(active)[1]] if self.kept else self.readout
        scores, groups = readout.exp(), torch.from_numpy(self.groups).to(rows.device)
        totals = scores.new_zeros(int(groups.max()) + 1, *scores.shape[1:]).index_add(0, groups, scores)
        which = flat = labels.flatten()
        if self.inputs is not None:
            if index is None:
                raise InvalidInput("labels that depend on the input need distinct inputs: pass (rows, index) for x.")
            start = torch.tensor([layer.config.initial_state[h] for h in active], device=rows.device)
            first = one_hot(start.expand(len(labels), 1, -1), sizes, states.dtype)
            states, which = torch.cat([first, states[:, :-1]], 1), flat * self.inputs + index.flatten()
        states = states.flatten(0, 1)
        if bool((flat == MISSING).any()):
            seen = (flat != MISSING).nonzero().flatten()
            flat, which, states = flat[seen], which[seen], states[seen]
        totals = totals[groups]
        if self.kept and not given and max(sizes) > SMALL:
            small = torch.cat([torch.full((d,), d <= SMALL) for d in sizes]).to(rows.device)
            totals = torch.where(small, totals, scores.sum(0))
        joint = nn.functional.embedding(which, (scores / totals).flatten(0, 1)) * states
        terms = torch.stack([-(part.sum(-1) + TINY).log() for part in joint.split(sizes, -1)])
        return terms.mean(1) if weights is None else terms @ weights[flat] / weights[flat].sum()

    def soft(self, x: tuple[Tensor, Tensor] | Tensor) -> Tensor:
        """B L S: the distributions of the heads that are not kept, after every input."""
        layer, active = self.layer, self.training_heads
        rows, index = x if isinstance(x, tuple) else (x, None)
        weight: Tensor = layer.weight
        bias: Tensor = layer.bias
        if self.kept:
            entries = self._places(active)[0]
            weight, bias = weight[entries], bias[entries]
        start = torch.tensor([layer.config.initial_state[h] for h in active], device=rows.device)
        start = start.expand(len(rows if index is None else index), -1).contiguous()
        sizes = [layer.heads[h] for h in active]
        return soft_states(
            layer.logit_input(rows), weight, bias, sizes, start, 1.0, row_index=index, backend=layer.backend
        )

    def _places(self, heads: Sequence[int]) -> tuple[Tensor, Tensor]:
        """(rows of the logits, columns of the read-out) of these heads."""
        layer = self.layer
        logits, values = entry_offsets(layer.heads), offsets(layer.heads)
        spans = [(logits[h], values[h], layer.heads[h]) for h in heads]
        return (
            torch.cat([torch.arange(e, e + d * d) for e, _, d in spans]).to(layer.weight.device),
            torch.cat([torch.arange(s, s + d) for _, s, d in spans]).to(layer.weight.device),
        )

    @torch.no_grad()
    def tables(self, rows: Tensor) -> list[Ints]:
        """For every head, V d: its arg max tables at these inputs (V m)."""
        return [table[0].cpu().numpy().astype(np.int64) for table in self.layer.tables(rows[None])]

    @torch.no_grad()
    def count_labels(self, rows: Tensor, batches: Sequence[tuple[Ints, Ints]]) -> None:
        """Let read-outs be how often each label occurs at each index on these words: for tables that were given.

        - `batches`: as of `keep`; labels depend on the index after an input, and all are given.
        """
        for table, place, start in zip(
            self.tables(rows), offsets(self.layer.heads), self.layer.config.initial_state, strict=True
        ):
            counts = np.full((self.labels, table.shape[1]), 1e-3)
            for words, labels in batches:
                np.add.at(counts, (labels, run_tables(table, words, start)[:, 1:]), 1)
            self.readout[:, 0, place : place + table.shape[1]] = torch.from_numpy(np.log(counts)).to(self.readout)

    @torch.no_grad()
    def keep(
        self, rows: Tensor, batches: Sequence[tuple[Ints | Tensor, Ints | Tensor]],
        optimizer: torch.optim.Optimizer | None = None, *, below: Sequence[Ints] | None = None,
    ) -> list[int]:  # fmt: skip
        """Read the heads on these words, keep those that tell labels apart, draw all others anew; which were kept.

        - `rows`: V m, what the layer reads at every input.
        - `batches`: pairs of words (which input stands where: B L) and their labels (B L), of several lengths; by
          their losses on the first ones heads are compared.
        - `below`: for every batch B (L + 1), the joint index of the layers below, before, between and after inputs.
        """
        read = [(np.asarray(words, np.int64), np.asarray(labels, np.int64)) for words, labels in batches]
        under = [np.zeros((len(w), w.shape[1] + 1), np.int64) for w, _ in read] if below is None else list(below)
        seen = np.concatenate([labels.ravel() for _, labels in read])
        counts, groups = np.bincount(seen[seen != MISSING], minlength=self.labels), self.groups
        self.open = entropy(groups, counts)
        if self.learned or not self.training_heads:
            return []
        words, labels = read[0]
        first = (rows, torch.from_numpy(words).to(rows.device)), torch.from_numpy(labels).to(rows.device)
        losses = self(*first, given=True).cpu()
        near = [h for h, loss in zip(self.training_heads, losses, strict=True) if loss <= losses.min() + NEAR]
        tables, kept, initial = self.tables(rows), list[int](), self.layer.config.initial_state
        found = {h: read_head(tables[h], read, under, self.labels, initial[h], self.start_label) for h in near}
        candidates = {h: head for h, head in found.items() if head is not None}
        while candidates and not self.learned:
            finer = {h: refined(groups, head.of_label) for h, head in candidates.items()}
            rest = {h: entropy(one, counts) for h, one in finer.items()}
            best = min(rest, key=rest.__getitem__)
            if self.open - rest[best] < min(GAIN, self.open / 2):
                break
            self.kept[best] = candidates.pop(best)
            groups, self.open = finer[best], rest[best]
            kept.append(best)
        if kept:
            known = labels[labels != MISSING]
            left = entropy(groups, np.bincount(known, minlength=self.labels)) - USELESS
            now = zip(self.training_heads, self(*first, given=True).tolist(), strict=True)
            self.draw([h for h, loss in now if self.layer.heads[h] <= SMALL or loss > left], optimizer)
        return kept

    @torch.no_grad()
    def kept_layer(self, rows: Tensor) -> NFSM:
        """A layer of the kept heads with the indices that they use; its tables at these inputs (V m) are theirs.

        Where indices of a head are one, transitions lead to the one that is left, and where inputs have changed since
        a head was kept, it follows: by the smallest change of the weights that does it. Raises InvalidInput where the
        inputs are linearly dependent and no change does.
        """
        if not self.kept:
            raise InvalidInput("no head is kept yet: call `keep` with words and labels.")
        order = sorted(self.kept)
        chosen = [self.kept[h].indices if h in self.kept else () for h in range(len(self.layer.heads))]
        smaller = select_indices(self.layer, chosen)
        read = smaller.logit_input(rows).double()
        logits = read @ smaller.weight.double().T + smaller.bias.double()
        change = torch.zeros_like(logits)
        for h, at in zip(order, entry_offsets(smaller.heads), strict=True):
            wanted, d = torch.from_numpy(self.kept[h].tables).to(rows.device), self.kept[h].size
            columns = logits[:, at : at + d * d].view(-1, d, d)
            to = wanted.clamp(min=0)[..., None]
            others = columns.scatter(2, to, -torch.inf).amax(2)
            short = (1.0 - (columns.gather(2, to)[..., 0] - others)).clamp(min=0.0)
            short = torch.where(wanted == MISSING, 0.0, short) if d > 1 else torch.zeros_like(short)
            change[:, at : at + d * d] = torch.zeros_like(columns).scatter(2, to, short[..., None]).flatten(1)
        if bool(change.any()):
            smaller.weight.add_((torch.linalg.pinv(read) @ change).T.to(smaller.weight))
        for h, table in zip(order, smaller.tables(rows[None]), strict=True):
            wanted = torch.from_numpy(self.kept[h].tables).to(rows.device)
            if bool(((table[0] != wanted) & (wanted != MISSING)).any()):
                raise InvalidInput("these inputs are linearly dependent: no affine map gives the merged tables.")
        return smaller

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs beside the parameters."""
        kept = {str(h): head.to_json() for h, head in self.kept.items()}
        return {"kept": kept, "open": None if self.open == float("inf") else self.open, "given": self.given.tolist()}

    def load_state(self, content: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.kept = {int(h): KeptHead.from_json(head) for h, head in content["kept"].items()}
        self.open = float("inf") if content["open"] is None else content["open"]
        self.given = np.array(content["given"], np.int64)


def read_head(
    tables: Ints, batches: Sequence[tuple[Ints, Ints]], below: Sequence[Ints], labels: int, start: int = 0,
    start_label: int | None = None,
) -> KeptHead | None:  # fmt: skip
    """What a head with these tables (V d) holds, without redundant indices; None where they cannot be left out.

    A node is a joint index of the layers below and an index of the head. Nodes that occur with the same label are one,
    and so are those to which an input leads from one node: what remains follows the label exactly, on these words, and
    changes with the input alone. The start is a node of its own, or that of its label.
    """
    d, J = tables.shape[1], 1 + max(int(path.max()) for path in below)
    occurs, moves = [], []
    for (inputs, label), under in zip(batches, below, strict=True):
        node = under * d + run_tables(tables, inputs, start)
        seen = label != MISSING
        occurs.append(np.unique(label[seen] * (J * d) + node[:, 1:][seen]))
        moves.append(np.unique((inputs * (J * d) + node[:, :-1]) * (J * d) + node[:, 1:]))
    first_node = int(below[0][0, 0]) * d + start
    parent = list(range(J * d))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def merge(one: int, other: int) -> bool:
        """The smaller root stays, the start before all; whether anything changed."""
        one, other = sorted((root(one), root(other)), key=lambda node: (node != first_node, node))
        parent[other] = one
        return one != other

    first: dict[int, int] = {}
    pairs = [divmod(number, J * d) for number in np.unique(np.concatenate(occurs)).tolist()]
    for name, node in pairs if start_label is None else [(start_label, first_node), *pairs]:
        merge(first.setdefault(name, node), node)
    steps = [(*divmod(at, J * d), node) for at, node in
             (divmod(number, J * d) for number in np.unique(np.concatenate(moves)).tolist())]  # fmt: skip
    leads: dict[tuple[int, int], int] = {}
    changed = True
    while changed:
        changed = False
        leads.clear()
        for input, before, after in steps:
            changed |= merge(leads.setdefault((input, root(before)), after), after)
    used = sorted({root(node) % d for nodes in leads.items() for node in (nodes[0][1], nodes[1])} | {start})
    place = {index: number for number, index in enumerate(used)}
    of_label, smaller = np.full(labels, MISSING), np.full((len(tables), len(used)), MISSING)
    for name, node in first.items():
        of_label[name] = place[root(node) % d]
    for (input, node), after in leads.items():
        at, to = (input, place[node % d]), place[root(after) % d]
        if smaller[at] not in (MISSING, to):
            return None
        smaller[at] = to
    return KeptHead(smaller, of_label, place[root(first_node) % d], tuple(used))


def run_tables(tables: Ints, inputs: Ints, start: int = 0) -> Ints:
    """B L -> B (L + 1): the index before, between and after inputs."""
    path = np.full((inputs.shape[0], inputs.shape[1] + 1), start, np.int64)
    for t in range(inputs.shape[1]):
        path[:, t + 1] = tables[inputs[:, t], path[:, t]]
    return path


def refined(groups: Ints, indices: Ints) -> Ints:
    """n: labels of the same group at the same index have the same number."""
    finer: Ints = np.unique(np.stack([groups, indices], axis=1), axis=0, return_inverse=True)[1].ravel()
    return finer


def entropy(groups: Ints, counts: Ints) -> float:
    """Nats of the label, given its group."""
    shares = counts / max(counts.sum(), 1)
    of_group = np.bincount(groups, shares)[groups]
    seen = shares > 0
    return max(0.0, float(-(shares[seen] * np.log(shares[seen] / of_group[seen])).sum()))
