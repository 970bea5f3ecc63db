"""Local search for a cheap family of congruences that separates all states, when there are too many to list.

    n  states

A family is built one congruence at a time, each as coarse as possible while it separates a pair that the others do not;
then every member is coarsened as far as the others allow. Repeatedly, random members are removed and the gap is filled
again (large neighborhood search). All congruences met, and their translations, form a pool; the best cover from the
pool is kept.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from exactstate._types import MISSING, Ints
from exactstate.automata.congruence import Pair, is_transitive_group, meet, quotient_tables
from exactstate.automata.factor.coarsen import coarsen
from exactstate.automata.factor.cover import CheapestProduct, cheapest_cover
from exactstate.automata.factor.lattice import Work, lattice
from exactstate.automata.isomorphism import translation
from exactstate.automata.minimize import numbered, reachable
from exactstate.errors import BudgetExceeded

Family = list[Ints]
_MAX_POOL = 200
_MAX_TRANSLATIONS = 20
_COVER_BUDGET = 50_000
_SPLIT_BUDGET = 100_000
_MAX_STALE_ROUNDS = 30
_FIRST_BUDGETS = 20


def search(tables: Ints, rng: np.random.Generator, work: Work) -> Family:
    """The cheapest family found; the same for the same generator state and work."""
    return _Search(tables, rng, work).run()


def cost(family: Family) -> int:
    """The sum of the squared block counts."""
    return sum((int(member.max()) + 1) ** 2 for member in family)


class _Search:
    def __init__(self, tables: Ints, rng: np.random.Generator, work: Work) -> None:
        self.tables, self.rng, self.work = tables.astype(np.int64), rng, work
        self.n = tables.shape[1]
        self.equality, self.everything = np.arange(self.n), np.zeros(self.n, np.int64)
        self.from_first = is_transitive_group(tables)
        self.pool: dict[bytes, Ints] = {self.equality.tobytes(): self.equality}
        self.pairs: dict[Pair, None] = {}
        self.parts: dict[bytes, Family] = {}
        self.translated: set[bytes] = set()

    def run(self) -> Family:
        given, self.work = self.work, Work(_FIRST_BUDGETS * self.work.budget)  # the first family is always completed
        best = self.choose(self.polish(self.split(self.fill([]))))
        given.spend(self.work.spent)
        self.work = given
        stale = 0
        while self.work.left and stale < _MAX_STALE_ROUNDS:
            if self.at_bound(best):
                self.explore()
                tried = self.choose(best)
            else:
                kept = [best[i] for i in self.rng.permutation(len(best))[int(self.rng.integers(1, len(best) + 1)) :]]
                tried = self.choose(self.polish(self.split(self.fill(kept))))
            stale = 0 if cost(tried) < cost(best) else stale + 1
            best = tried if cost(tried) <= cost(best) else best
        return best

    def explore(self) -> None:
        """Add a new random congruence to the pool."""
        pair = self.one_pair_of(self.everything)
        self.keep([coarsen(self.tables, self.equality, pair, self.rng, self.work, from_first=self.from_first)])

    def keep(self, family: Family) -> None:
        self.pool |= {member.tobytes(): member for member in family}

    def at_bound(self, family: Family) -> bool:
        """Whether no family of the sizes in the pool could be cheaper."""
        sizes = {int(member.max()) + 1 for member in self.pool.values()}
        return cost(family) <= CheapestProduct(sizes)(self.n)

    def fill(self, family: Family) -> Family:
        """Add members until all states are separated."""
        family = list(family)
        rest = meet(*family) if family else self.everything
        while not self.separated(rest):
            together = rest if family and self.rng.random() < 0.5 else self.one_pair_of(rest)
            member = coarsen(self.tables, self.equality, together, self.rng, self.work, from_first=self.from_first)
            family.append(member)
            rest = meet(rest, member)
        return family

    def separated(self, rest: Ints) -> bool:
        return bool(rest.max() == self.n - 1)

    def one_pair_of(self, rest: Ints) -> Ints:
        """The partition that merges only one pair of states, drawn from the pairs that `rest` merges."""
        crowded = np.flatnonzero(np.bincount(rest)[rest] > 1)
        p = 0 if self.from_first else int(self.rng.choice(crowded))
        q = int(self.rng.choice(np.flatnonzero((rest == rest[p]) & (self.equality != p))))
        self.pairs[min(p, q), max(p, q)] = None
        return numbered(np.where(self.equality == q, p, self.equality))

    def polish(self, family: Family) -> Family:
        """Coarsen every member as far as the others allow, the finest first; drop those that become one block."""
        family = sorted(family, key=lambda member: -int(member.max()))
        for i, member in enumerate(family):
            rest = meet(self.everything, *family[:i], *family[i + 1 :])
            family[i] = coarsen(self.tables, member, rest, self.rng, self.work, from_first=self.from_first)
        family = [member for member in family if member.max() > 0]
        self.keep(family)
        return family

    def split(self, family: Family) -> Family:
        """Replace a member by several coarser ones that meet in it, where that is cheaper."""
        parts: Family = []
        for member in family:
            key = member.tobytes()
            if key not in self.parts:
                self.parts[key] = self.split_one(member)
            parts.extend(self.parts[key])
        return parts

    def split_one(self, member: Ints) -> Family:
        work = Work(_SPLIT_BUDGET)
        try:
            known = lattice(quotient_tables(self.tables, member), work)
        except BudgetExceeded:
            return [member]
        finally:
            self.work.spend(work.spent)
        found = cheapest_cover(known.sizes.tolist(), known.separates, states=int(member.max()) + 1, work=work)
        return [numbered(known.congruences[c])[member] for c in found.chosen]

    def choose(self, family: Family) -> Family:
        """The cheapest cover from the pool, or this family if that is no cheaper."""
        pool = self.candidates()
        sizes = [int(member.max()) + 1 for member in pool]
        while True:
            pairs = np.array(list(self.pairs), np.int64).reshape(-1, 2)
            apart = np.stack([member[pairs[:, 0]] != member[pairs[:, 1]] for member in pool])
            found = cheapest_cover(sizes, apart, states=self.n, work=Work(_COVER_BUDGET))
            self.work.spend(_COVER_BUDGET // 20)
            chosen = [pool[c] for c in found.chosen]
            rest = meet(self.everything, *chosen)
            if self.separated(rest):
                return chosen if cost(chosen) < cost(family) else family
            self.one_pair_of(rest)

    def candidates(self) -> Family:
        """The coarsest congruences of the pool, translations of the very coarsest, and equality."""
        for key, member in sorted(self.pool.items(), key=lambda item: int(item[1].max()))[:5]:
            if key not in self.translated:
                moved = [numbered(member[translated]) for translated in self.translations]
                self.keep(moved)
                self.translated |= {key, *(found.tobytes() for found in moved)}
        return [*sorted(self.pool.values(), key=lambda member: int(member.max()))[:_MAX_POOL], self.equality]

    @cached_property
    def translations(self) -> list[Ints]:
        """Some translations of the machine, if it has any."""
        if (self.tables == MISSING).any() or len(order := reachable(self.tables, 0)) < self.n:
            return []
        found: list[Ints] = []
        for target in self.rng.permutation(self.n)[:_MAX_TRANSLATIONS].tolist():
            self.work.spend(self.tables.size)
            moved = translation(self.tables, order, target)
            if moved is None:
                break
            found.append(moved)
        return found
