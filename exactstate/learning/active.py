"""Active learning: ask a system what it answers, until its machine is known. The engine is AALpy (extra `learn`).

    pip install '.[learn]'
    learn_actively(lambda word: [...], symbols=["open", "close"], cache="answers.jsonl")

L*, KV and L# of AALpy make hypotheses; the words that test them are ours: a conformance suite for a few extra states,
and random words. Every answer is kept in a log, so that an interrupted run resumes, and no word is asked twice.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from exactstate import records
from exactstate.automata import Mealy, minimize
from exactstate.errors import BackendUnavailable, BudgetExceeded, InvalidConfig, InvalidInput, NotLearned
from exactstate.learning.learn import LearnedMachine
from exactstate.learning.logs import read_log
from exactstate.learning.suites import conformance_suite

Query = Callable[[Sequence[str]], Sequence[str]]
ENGINES = ("lstar", "kv", "lsharp")
RANDOM_WORDS = 200
MAX_SECONDS = 30.0
"""Seconds that a process may take for an answer."""
MAX_ANSWER = 1 << 24
"""Bytes of the longest answer: 16 MiB."""


class ProcessSystem:
    """A program that reads a line of inputs, resets its state, and answers with a line of as many outputs."""

    def __init__(self, command: str, *, patience: float = MAX_SECONDS) -> None:
        self.command, self.patience = command, patience
        try:
            arguments = shlex.split(command)
            self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except (OSError, ValueError, IndexError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidConfig(f"{command!r} cannot be started: {reason.lower()}.") from None

    def __enter__(self) -> ProcessSystem:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def query(self, word: Sequence[str]) -> list[str]:
        """The outputs of the program on a word."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        shown = " ".join(word[:8])
        if any(len(symbol.split()) != 1 or symbol.split()[0] != symbol for symbol in word):
            raise InvalidInput(f"a program is asked in words between blanks; an input of {shown!r} holds a blank.")
        if select.select([stdout], [], [], 0)[0] and os.read(stdout.fileno(), 1 << 16):
            raise InvalidInput(f"{self.command!r} printed a line that nobody asked for, before {shown!r}.")
        try:
            stdin.write(" ".join(word).encode() + b"\n")
            stdin.flush()
        except OSError:
            raise InvalidInput(f"{self.command!r} ended before it answered {shown!r}.") from None
        until, answer = time.monotonic() + self.patience, bytearray()
        while not answer.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([stdout], [], [], left)[0]:
                raise InvalidInput(f"{self.command!r} did not answer {shown!r} within {self.patience:g} s.")
            part = os.read(stdout.fileno(), 1 << 16)
            if not part:
                raise InvalidInput(f"{self.command!r} ended before it answered {shown!r}.")
            answer += part
            if len(answer) > MAX_ANSWER:
                raise InvalidInput(f"{self.command!r} answered {shown!r} with more than {MAX_ANSWER >> 20} MiB.")
        if answer.count(b"\n") > 1:
            raise InvalidInput(f"{self.command!r} answered {shown!r} with more than one line.")
        outputs = answer.decode(errors="replace").split()
        if len(outputs) != len(word):
            raise InvalidInput(
                f"{self.command!r} answered {shown!r} with {len(outputs)} outputs; {len(word)} were wanted, one for "
                "each input, separated by blanks."
            )
        return outputs


class QueryCache:
    """Answers so far, as a trie; kept in a log of JSON lines if there is a path."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.root: dict[str, Any] = {}
        self.file: IO[str] | None = None
        self.loaded = 0
        if path is None:
            return
        if Path(path).exists() and Path(path).stat().st_size:
            records.mend(path)  # a full disk leaves an incomplete last line
            for trace in read_log(path, format="jsonl"):
                self.add(trace.inputs, [str(output) for output in trace.outputs])
                self.loaded += 1
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115

    def get(self, word: Sequence[str]) -> list[str] | None:
        """The outputs of a word that was asked, or is a prefix of one."""
        node, outputs = self.root, []
        for symbol in word:
            if symbol not in node:
                return None
            output, node = node[symbol]
            outputs.append(output)
        return outputs

    def add(self, word: Sequence[str], outputs: Sequence[str]) -> None:
        """Keep an answer; one that contradicts an earlier one is refused."""
        node = self.root
        for number, (symbol, output) in enumerate(zip(word, outputs, strict=True)):
            known = node.setdefault(symbol, (output, {}))
            if known[0] != output:
                raise InvalidInput(
                    f"the system answers {' '.join(word[: number + 1])!r} with {output!r}, and answered with "
                    f"{known[0]!r} before; active learning needs a deterministic system that starts anew for each word."
                )
            node = known[1]

    def write(self, word: Sequence[str], outputs: Sequence[str]) -> None:
        if self.file is not None:
            self.file.write(json.dumps({"inputs": list(word), "outputs": list(outputs)}, ensure_ascii=False) + "\n")
            self.file.flush()

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def learn_actively(
    query: Query, symbols: Sequence[str], *, engine: str = "lsharp", max_queries: int = 100_000, extra_states: int = 1,
    cache: str | os.PathLike[str] | None = None, seed: int = 42, watch: Callable[[int, int], None] | None = None,
) -> LearnedMachine:  # fmt: skip
    """The Mealy machine of a system that answers words of inputs with as many outputs.

    - `query`: the outputs of a word, each time from the initial state; `ProcessSystem(command).query` asks a program.
    - `engine`: lstar, kv or lsharp.
    - `max_queries`: raises `NotLearned` beyond; with a `cache`, the same call resumes.
    - `extra_states`: hypotheses are tested for implementations with so many more states.
    """
    if engine not in ENGINES:
        raise InvalidConfig(f"the engine is one of {', '.join(ENGINES)}; got {engine!r}.")
    if not symbols:
        raise InvalidConfig("active learning needs the inputs of the system; got none.")
    try:
        from aalpy import learning_algs
        from aalpy.base import SUL, Oracle
    except ImportError:
        raise BackendUnavailable("active learning needs AALpy: pip install aalpy.") from None
    asked = QueryCache(cache)
    counts = [0, 0]

    def ask(word: Sequence[str]) -> list[str]:
        known = asked.get(word)
        if known is not None:
            return known
        if counts[0] >= max_queries:
            again = "repeat the command with more" if cache is not None else "allow more, and keep answers in a cache"
            raise NotLearned(f"not learned within {max_queries:,} queries; {again}.")
        outputs = [str(output) for output in query(list(word))]
        if len(outputs) != len(word):
            raise InvalidInput(f"the system answered {len(word)} inputs with {len(outputs)} outputs.")
        asked.add(word, outputs)
        asked.write(word, outputs)
        counts[0], counts[1] = counts[0] + 1, counts[1] + len(word)
        if watch is not None:
            watch(*counts)
        return outputs

    class System(SUL):
        def pre(self) -> None:
            self.word: list[str] = []

        def post(self) -> None:
            pass

        def step(self, letter: str) -> str:
            self.word.append(letter)
            return ask(self.word)[-1]

        def query(self, word: Sequence[str]) -> list[str]:
            self.num_queries += 1
            self.num_steps += len(word)
            return ask(word) if word else []

    class ConformanceOracle(Oracle):
        def find_cex(self, hypothesis: Any) -> tuple[str, ...] | None:
            machine = _machine_of(hypothesis, symbols)
            for word in _test_words(machine, extra_states, seed):
                names = [symbols[a] for a in word]
                wanted = [machine.outputs[o] for o in machine.output_ids(np.array(word, np.int64)).tolist()]
                seen = ask(names)
                if seen != wanted:
                    wrong = next(i for i, pair in enumerate(zip(seen, wanted, strict=True)) if pair[0] != pair[1])
                    return tuple(names[: wrong + 1])
            return None

    system = System()
    run = {"lstar": learning_algs.run_Lstar, "kv": learning_algs.run_KV, "lsharp": learning_algs.run_Lsharp}[engine]
    try:
        found = run(list(symbols), system, ConformanceOracle(list(symbols), system), "mealy", print_level=0)
    finally:
        asked.close()
    machine = minimize(_machine_of(found, symbols))
    return LearnedMachine(
        machine=machine, kind="mealy", traces=counts[0] + asked.loaded, length=counts[1], nodes=0,
        states=machine.n_states, unseen=(), missing="refuse", noise=0.0, observed=counts[1], disagreeing=0,
        order=engine,
    )  # fmt: skip


def _machine_of(hypothesis: Any, symbols: Sequence[str]) -> Mealy:
    """AALpy's machine as ours; symbols keep their order."""
    states = [hypothesis.initial_state, *(s for s in hypothesis.states if s is not hypothesis.initial_state)]
    number = {id(state): q for q, state in enumerate(states)}
    outputs = list(dict.fromkeys(state.output_fun[a] for state in states for a in symbols))
    return Mealy(
        symbols=tuple(symbols), outputs=tuple(outputs),
        tables=np.array([[number[id(state.transitions[a])] for state in states] for a in symbols]),
        readout=np.array([[outputs.index(state.output_fun[a]) for state in states] for a in symbols]),
    )  # fmt: skip


def _test_words(machine: Mealy, extra_states: int, seed: int) -> list[tuple[int, ...]]:
    """A conformance suite, shortest words first, for as many extra states as is possible; then random words."""
    words: list[tuple[int, ...]] = []
    for extra in range(extra_states, -1, -1):
        try:
            words = sorted(conformance_suite(machine, method="wp", extra_states=extra).words, key=len)
            break
        except BudgetExceeded:
            continue
    generator = np.random.default_rng(seed)
    length = 2 * machine.n_states + 10
    return [
        *words,
        *(tuple(word) for word in generator.integers(0, machine.n_symbols, (RANDOM_WORDS, length)).tolist()),
    ]
