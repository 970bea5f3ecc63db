"""Walk the target beside the replayed machine: is every pair listed that words meet, and all that is said right?"""

from __future__ import annotations

import numpy as np

from detent.certification.checking.form import Refused
from detent.certification.checking.replay import Bools, Final, Replay, all_reached


def matched(replay: Replay) -> Bools:
    """Refuse a matching that does not hold; A: whether something is asked when a symbol is read."""
    told, question = replay.told, replay.told.question
    asking, asked, right = [[0]] * len(told.symbols), [[-1]] * len(told.symbols), [[0]] * len(told.states)
    begin = 0
    if question is not None:
        begin, asking, asked, right = (question[key] for key in ("start", "tables", "asked", "right"))
    if told.matching[0] != [0, told.start, begin]:
        raise Refused(f"matching[0] is {told.matching[0]}; the starts are {[0, told.start, begin]}.")
    asked_at, reply_of = np.zeros(len(told.symbols), bool), dict[Final, int]()
    pairs = {tuple(pair): i for i, pair in enumerate(told.matching)}
    leads: list[list[int]] = []
    for i, (configuration, task, z) in enumerate(told.matching):
        leads.append([])
        answered: list[int] = []
        for step, (symbol, reached, final) in enumerate(replay.moves[configuration]):
            then = (reached, told.tables[symbol][task], asking[symbol][z])
            if then not in pairs:
                raise Refused(
                    f"matching[{i}] and the symbol {told.symbols[symbol]!r} lead to {list(then)}, "
                    "which is not among matching."
                )
            leads[-1].append(pairs[then])
            said, wanted = told.readout[configuration][step], told.wanted[symbol][task]
            if said != wanted:
                raise Refused(
                    f"readout[{configuration}][{step}] says {told.labels[said]!r}; the target, beside it in "
                    f"matching[{i}], wants {told.labels[wanted]!r}."
                )
            if (item := asked[symbol][z]) >= 0:
                asked_at[symbol] = True
                answered.append(reply_of.setdefault(final, right[then[1]][item]))
                if answered[-1] != right[then[1]][item]:
                    raise Refused(f"matching[{i}]: two answers are right where only one can be given.")
        if told.replies[i] != answered:
            raise Refused(f"replies[{i}] is {told.replies[i]}; {answered} is right.")
    all_reached(leads, "matching")
    return asked_at
