"""What the page in web/ must agree with: `python -m tests.web.golden` writes it, `test_golden.py` compares it.

- web/src/machines.json: the machines that the page offers;
- web/src/learn/settings.json: the settings of the recipe `gradient`, by which the page learns;
- web/golden/heads.json: likelihoods of heads and their gradients, and what is read out of heads; sizes.json: how
  large heads are, by the number of labels;
- web/golden/runs.json: random machines, as JSON and as DOT, with words, states and outputs of the Python runtime;
- web/golden/pairs.json: pairs of machines with the length of the shortest distinguishing word;
- web/golden/drift.json: the horizons and rounded rotations of paper.theory;
- web/golden/certificates.json: certificates, and the verdict of check.py on every change of every value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import exactstate
from exactstate.automata import Mealy, Moore, Semiautomaton, distinguishing_word, minimize, tomita
from exactstate.automata.io.dot_writer import to_dot
from exactstate.automata.io.json_format import to_json
from exactstate.certify.certificate import sealed
from exactstate.certify.check import check
from exactstate.nn import NFSM, heads
from exactstate.runtime import Machine
from exactstate.train import search
from exactstate.train.config import SEARCHED, SearchConfig, search_heads
from paper.theory.drift import RoundedRotation, iterate
from paper.theory.horizons import contracting_horizon, isometric_horizon
from tests.certify.certificates import MAKERS
from tests.certify.certificates import certificate as certificate_here
from tests.certify.test_check import at, changed, leaves, others

WEB = Path(__file__).parents[2] / "web"
TASKS = {
    "S3": "Permutations of three things", "FF": "Flip-flop", "Z2": "Parity", "Z5": "Counter modulo 5",
    "Z7": "Counter modulo 7", "S4": "Permutations of four things", "A5": "Even permutations of five things",
}  # fmt: skip
HOSTILE = (
    "<img src=x onerror=alert(1)>", "</script>", "a/b", 'say "hi"', "100%", "a|b", " blank ", "\\n", "é", "\U0001f600",
    "{x}", "\u202eabc", "&amp;", "'", "`", "${1}",
)  # fmt: skip
MACHINES, PAIRS, SAMPLED_STORY, HEADS = 100, 40, 500, 40


def library() -> list[dict[str, Any]]:
    return [
        {"name": name, "about": about, "machine": json.loads(to_json(exactstate.task(name).machine)),
         "weights": [float(w) for w in getattr(exactstate.task(name).sampler, "weights", ())]}
        for name, about in TASKS.items()
    ]  # fmt: skip


def random_machine(rng: np.random.Generator, kind: str, *, hostile: bool = False) -> Semiautomaton:
    n, A, outputs = (int(rng.integers(1, most)) for most in (9, 5, 5))
    pool = rng.permutation(np.array(HOSTILE, object)).tolist() if hostile else [f"s{i}" for i in range(16)]
    fields: dict[str, Any] = {
        "symbols": tuple(pool[:A]), "states": tuple(pool[A : A + n]), "tables": rng.integers(0, n, (A, n)),
    }  # fmt: skip
    if kind == "semiautomaton":
        return Semiautomaton(**fields)
    fields |= {"start": int(rng.integers(n)), "outputs": tuple(f"out {i}" for i in range(outputs))}
    if kind == "moore":
        return Moore(**fields, readout=rng.integers(0, outputs, n))
    return Mealy(**fields, readout=rng.integers(0, outputs, (A, n)))


def runs() -> list[dict[str, Any]]:
    rng, rows = np.random.default_rng(20), []
    for i in range(MACHINES):
        automaton = random_machine(rng, ("moore", "mealy", "semiautomaton")[i % 3], hostile=i % 4 == 3)
        machine = Machine.of(automaton)
        word = rng.integers(0, len(machine.symbols), int(rng.integers(0, 70))).tolist()
        rows.append({
            "json": to_json(automaton),
            "dot": to_dot(automaton, dialect=("learnlib", "aalpy")[i % 5 == 0]),
            "word": [machine.symbols[a] for a in word],
            "states": [machine.automaton.states[q] for q in machine.trajectory(np.array(word, int)).tolist()],
            "outputs": machine.outputs([machine.symbols[a] for a in word]),
        })  # fmt: skip
    return rows


def pairs() -> list[dict[str, Any]]:
    rng, rows = np.random.default_rng(21), []
    for i in range(PAIRS):
        kind = ("moore", "mealy")[i % 2]
        one = random_machine(rng, kind)
        assert isinstance(one, Moore | Mealy)
        if i % 4 < 2:
            other: Moore | Mealy = minimize(one)
        else:
            tables = one.tables.copy()
            tables[int(rng.integers(one.n_symbols)), int(rng.integers(one.n_states))] = int(rng.integers(one.n_states))
            fields = {"symbols": one.symbols, "states": one.states, "start": one.start, "outputs": one.outputs}
            other = type(one)(**fields, tables=tables, readout=one.readout)  # type: ignore[arg-type]
        word = distinguishing_word(one, other)
        rows.append({"one": to_json(one), "other": to_json(other), "length": None if word is None else len(word)})
    word = distinguishing_word(tomita(4), tomita(7))
    rows.append({"one": to_json(tomita(4)), "other": to_json(tomita(7)), "length": len(word or ())})
    return rows


def certificate(name: str) -> dict[str, Any]:
    """The same on every machine: without the versions that wrote it."""
    return sealed(certificate_here(name) | {"made": {"exactstate": "0", "python": "0", "numpy": "0"}})


def mutants(name: str) -> Iterator[tuple[list[Any], str, str]]:
    """(way to a value, what it becomes as JSON, verdicts): of the changed content, and of the same sealed again."""
    content = certificate(name)
    ways = list(leaves(content))
    if name == "TSO2":
        ways = [ways[i] for i in np.random.default_rng(22).choice(len(ways), SAMPLED_STORY, replace=False)]
    for i, way in enumerate(ways):
        values = others(at(content, way))
        for value in values[i % len(values) :][:1] if name == "TSO2" else values:
            other = changed(content, way, value)
            verdicts = "".join("01"[bool(check(one))] for one in (other, sealed(other)))
            yield list(way), json.dumps(value), verdicts


def certificates() -> list[dict[str, Any]]:
    return [
        {"name": name, "content": certificate(name), "mutants": [list(mutant) for mutant in mutants(name)]}
        for name in MAKERS
    ]


def drift() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in ("fp32", "bf16", "fp16", "fp8 e4m3", "fp8 e5m2"):
        rotation = RoundedRotation.to(name, 7)
        first, _ = iterate(rotation, min(rotation.first_wrong_step + 1, 100_000), [])
        rows.append({"format": name, "cosine": rotation.cosine, "sine": rotation.sine,
                     "predicted": rotation.first_wrong_step, "iterated": first})  # fmt: skip
    rng = np.random.default_rng(23)
    for kappa, C, eta in rng.uniform((0.05, 0.1, -8), (0.999, 3, -0.5), (60, 3)).tolist():
        rows.append({"kappa": kappa, "C": C, "eta": 10**eta, "isometric": isometric_horizon(C, 10**eta),
                     "contracting": contracting_horizon(kappa, C, 10**eta)})  # fmt: skip
    return rows


def settings() -> dict[str, Any]:
    """The constants of `exactstate.nn.heads` and `exactstate.train.search`."""
    config, small = SearchConfig(), heads.SMALL
    layer = NFSM(1, heads=(small, small + 1))
    heads.HeadReadouts(layer, 2)
    stay = layer.bias[[0, small * small]].tolist()
    return {
        "small": small, "stay": stay, "useless": heads.USELESS, "certain": heads.CERTAIN, "gain": heads.GAIN,
        "near": heads.NEAR, "lr": search.READ_LR, "firstLength": search.FIRST_LENGTH, "growEvery": search.GROW_EVERY,
        "patience": search.PATIENCE, "morePatience": search.MORE_PATIENCE, "readWords": search.READ_WORDS,
        "readLengths": search.READ_LENGTHS, "batch": config.batch, "length": config.length,
        "checkEvery": config.check_every, "steps": config.steps, "searched": SEARCHED,
    }  # fmt: skip


def head_rows() -> list[dict[str, Any]]:
    """The likelihood of a head on words, and what is read out of its tables."""
    rng, rows = np.random.default_rng(24), []
    for i in range(HEADS):
        V, P, Q = (int(rng.integers(least, most)) for least, most in ((1, 4), (2, 5), (1, 4)))
        factors = [np.stack([rng.permutation(m) if i % 3 else rng.integers(0, m, m) for _ in range(V)]) for m in (P, Q)]
        machine = (factors[0][:, :, None] * Q + factors[1][:, None, :]).reshape(V, P * Q)
        words = rng.integers(0, V, (12, 9))
        holds = np.array([0, *rng.permutation(np.arange(1, P)), *rng.integers(0, P, int(rng.integers(4)))])
        logits = np.round(rng.normal(size=(V, len(holds), len(holds))), 3)  # by symbol, to, from
        for a in range(V):
            for k, value in enumerate(holds):  # to an index that holds the right value; in some rows to any
                right = np.flatnonzero(holds == factors[0][a, value]) if i % 4 < 3 else np.arange(len(holds))
                logits[a, int(rng.choice(right)), k] += 5
        readout, groups = np.round(rng.normal(size=(P * Q, len(holds))), 3), np.arange(P * Q) % Q
        rows.append(_head_row(logits, readout, groups, words, heads.run_tables(machine, words)[:, 1:]))
    return rows


def _head_row(
    logits: np.ndarray, readout: np.ndarray, groups: np.ndarray, words: np.ndarray, labels: np.ndarray
) -> dict[str, Any]:
    """Of a layer with one head, which reads the symbol itself."""
    V, d, _ = logits.shape
    layer = NFSM(V, heads=(d,)).double()
    alone = heads.HeadReadouts(layer, len(readout)).double()
    alone.given = groups
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(logits.transpose(2, 1, 0).reshape(d * d, V)))
        layer.bias.zero_()
        alone.readout.copy_(torch.from_numpy(readout)[:, None])
    symbols = torch.eye(V, dtype=torch.float64)
    loss = alone((symbols, torch.from_numpy(words)), torch.from_numpy(labels)).sum()
    loss.backward()
    tables = alone.tables(symbols)[0]
    held = heads.read_head(tables, [(words, labels)], [np.zeros((12, 10), np.int64)], len(readout), start_label=0)
    return {
        "logits": logits.transpose(0, 2, 1).tolist(), "readout": readout.tolist(), "groups": groups.tolist(),
        "words": words.tolist(), "labels": labels.tolist(), "loss": round(loss.item(), 6),
        "gradient": _rounded(layer.weight.grad.T.reshape(V, d, d)), "readGradient": _rounded(alone.readout.grad[:, 0]),
        "held": None if held is None else {"tables": held.tables.tolist(), "ofLabel": held.of_label.tolist(),
                                           "start": held.start, "indices": list(held.indices)},
    }  # fmt: skip


def _rounded(values: torch.Tensor) -> list[Any]:
    """Rounded, with one zero."""
    return (values.double().round(decimals=5) + 0.0).tolist()


def files() -> dict[Path, str]:
    """Every file and its text."""
    plain = {"ensure_ascii": True, "separators": (",", ":")}
    made = {
        "src/machines.json": library(), "golden/runs.json": runs(), "golden/pairs.json": pairs(),
        "golden/certificates.json": certificates(), "golden/drift.json": drift(), "golden/heads.json": head_rows(),
        "golden/sizes.json": [search_heads(labels) for labels in range(1, 81)],
    }  # fmt: skip
    texts = {WEB / name: _lines(rows, **plain) for name, rows in made.items()}
    return texts | {WEB / "src/learn/settings.json": json.dumps(settings(), indent=2) + "\n"}


def _lines(rows: list[Any], **plain: Any) -> str:
    return "[\n" + ",\n".join(json.dumps(row, **plain) for row in rows) + "\n]\n"


if __name__ == "__main__":
    for path, text in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"{path.relative_to(WEB.parent)}: {len(text):,} bytes")
