"""`exactstate learn`: a machine from a log of traces, or from a system that answers queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactstate.cli._cluster import Cluster, Partition, Workers
from exactstate.cli._output import AsJson, print_json, print_text, progress
from exactstate.errors import InvalidConfig, NotLearned

if TYPE_CHECKING:
    from exactstate.learning import LearnedMachine

WAYS = ("merging", "gradient")
ENGINES = ("lstar", "kv", "lsharp")


def learn(
    log: Annotated[
        Path | None, typer.Argument(metavar="LOG", show_default=False, help="JSON lines, CSV, text or Abbadingo.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="MACHINE", help="The file: .dot, .json, .exactstate.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="mealy, moore or dfa. Default: mealy; dfa where only whole traces are labeled.")
    ] = None,
    missing: Annotated[
        str, typer.Option(help="Transitions that were never seen: lead to a sink, are a loop, or refuse.")
    ] = "sink",
    noise: Annotated[
        str, typer.Option(metavar="SHARE|auto", help="The share of wrong outputs; auto estimates it.")
    ] = "0",
    by: Annotated[str, typer.Option(help="merging, or gradient: a network learns the log; needs torch.")] = "merging",
    format: Annotated[str | None, typer.Option(help="jsonl, csv, text or abbadingo. Default: by the file.")] = None,
    separator: Annotated[
        str | None, typer.Option(help="Between the tokens of a line, for names with blanks; or between columns.")
    ] = None,
    max_states: Annotated[int | None, typer.Option(min=1, help="Give up beyond so many states.")] = None,
    ask: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Active learning: a program that answers a line of inputs with outputs."),
    ] = None,
    symbols: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="With --ask: the inputs of the system.")
    ] = None,
    engine: Annotated[str, typer.Option(help="With --ask: lstar, kv or lsharp.")] = "lsharp",
    max_queries: Annotated[int, typer.Option(min=1, help="With --ask: the most queries.")] = 100_000,
    extra_states: Annotated[
        int, typer.Option(min=0, help="With --ask: test for so many states more than were found.")
    ] = 1,
    cache: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --ask: keep all answers here, and resume from them.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="With --by gradient and --ask.")] = 42,
    cluster: Cluster = None,
    workers: Workers = None,
    partition: Partition = 32,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Learn a machine from a log of traces, without knowing its states.

    A trace is a word of inputs and the outputs that were seen, such as `{"inputs": ["open"], "outputs": ["ok"]}` on a
    line, or `open/ok close/ok`. The machine agrees with every line; transitions that no line took are marked by the
    output `missing`. Lines that contradict each other are an error that names both, unless --noise says how many
    outputs may be wrong. Exit code 1 when no machine is found.

    With --cluster parts of the log are counted into prefix trees in parallel by Ray and merged; the machine is the
    same, byte for byte. States are merged by one process.

    Examples:

        exactstate learn traces.jsonl -o machine.dot
        exactstate learn traces.txt --missing loop -o machine.json
        exactstate learn noisy.csv --noise auto -o machine.dot
        exactstate learn noisy.csv --by gradient -o machine.dot
        exactstate learn traces.jsonl --cluster local --workers 2 -o machine.dot
        exactstate learn --ask ./system --symbols push,wait -o machine.dot
    """
    if by not in WAYS:
        raise InvalidConfig(f"--by is one of {', '.join(WAYS)}; got {by!r}.")
    if (log is None) == (ask is None):
        raise InvalidConfig("give a log to learn from, or --ask COMMAND to ask a running system.")
    if cluster is not None and (ask is not None or by != "merging"):
        raise InvalidConfig("--cluster counts a log into prefix trees: it takes LOG and --by merging.")
    try:
        if ask is not None:
            learned = _ask(ask, symbols, engine, max_queries, extra_states, cache, seed)
        else:
            assert log is not None
            learned = _learn(
                log, kind, missing, noise, by, format, separator, max_states, seed, cluster, workers, partition << 20
            )
    except NotLearned as error:
        print_json({"learned": False, "reason": str(error)}) if as_json else print_text(error)
        raise typer.Exit(1) from None
    if output is not None:
        learned.save(output)
    if as_json:
        print_json({
            "learned": True, "kind": learned.kind, "states": learned.states, "symbols": list(learned.machine.symbols),
            "outputs": list(learned.machine.outputs), "traces": learned.traces, "length": learned.length,
            "unseen": len(learned.unseen), "noise": learned.noise, "disagreeing": learned.disagreeing,
            "by": by if ask is None else engine, "file": None if output is None else str(output),
        })  # fmt: skip
    else:
        print_text(learned.explain())
        print_text(f"written to {output}" if output is not None else "not written; give -o FILE to keep it")


def _learn(
    log: Path, kind: str | None, missing: str, noise: str, by: str, format: str | None, separator: str | None,
    max_states: int | None, seed: int, cluster: str | None, workers: int | None, partition: int,
) -> LearnedMachine:  # fmt: skip
    from exactstate.learning.learn import learn as learn_machine
    from exactstate.learning.trace_tree import read_tree

    share = _share(noise)
    if by == "gradient":
        from exactstate.learning.logs import read_log
        from exactstate.train.from_traces import learn_by_gradient

        return learn_by_gradient(
            read_log(log, format=format, separator=separator), noise=share, missing=missing, seed=seed
        )
    with progress("{:,} traces, {:,} prefixes") as watch:
        if cluster is None:
            tree = read_tree(log, format=format, separator=separator, watch=watch)
        else:
            from exactstate.learning.cluster import read_tree_on_cluster

            tree = read_tree_on_cluster(
                log, format=format, separator=separator, address=cluster, workers=workers, partition=partition,
                watch=watch,
            )  # fmt: skip
    return learn_machine(tree, kind=kind, missing=missing, noise=share, max_states=max_states)  # type: ignore[arg-type]


def _share(noise: str) -> float | str:
    if noise == "auto":
        return noise
    try:
        return float(noise)
    except ValueError:
        raise InvalidConfig(f"--noise is a share such as 0.05, or auto; got {noise!r}.") from None


def _ask(
    command: str, symbols: str | None, engine: str, max_queries: int, extra_states: int, cache: Path | None, seed: int
) -> LearnedMachine:
    from exactstate.learning.active import ProcessSystem, learn_actively

    if symbols is None:
        raise InvalidConfig("--ask needs the inputs of the system: --symbols open,close.")
    if engine not in ENGINES:
        raise InvalidConfig(f"--engine is one of {', '.join(ENGINES)}; got {engine!r}.")
    names = [name.strip() for name in symbols.split(",") if name.strip()]
    with progress("{:,} queries, {:,} symbols") as watch, ProcessSystem(command) as system:
        return learn_actively(
            system.query, names, engine=engine, max_queries=max_queries, extra_states=extra_states, cache=cache,
            seed=seed, watch=watch,
        )  # fmt: skip
