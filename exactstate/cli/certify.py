"""`exactstate certify`: compare a network or a machine with its target on every word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactstate.cli._output import AsJson, print_json, print_text
from exactstate.errors import InvalidConfig
from exactstate.records import Row

if TYPE_CHECKING:
    from exactstate.certify import Certificate, Verdict


def certify(
    subject: Annotated[
        Path,
        typer.Argument(metavar="RUN|MACHINE", help="The folder of a run, from `exactstate train`, or a machine file."),
    ],
    against: Annotated[
        str | None, typer.Option(metavar="TASK|FILE", help="The target. Default for a run: its task.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="CERT", help="Write the certificate of a run here.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For a monitor: rules to prove on all traces that it allows.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare a network or a machine with its target, on every word of every length.

    For a run, the machine is extracted from the weights again, and the certificate lists the number formats for which
    rounding is proved harmless. Exit code 0 when machine and target agree, 1 when they differ, with a shortest word
    that shows the difference.

    Examples:

        exactstate certify runs/S3-42-gradient
        exactstate certify runs/S3-42-gradient -o s3-certificate.json
        exactstate certify runs/S3-42-gradient/machine.json --against S3
        exactstate certify mine.dot --against theirs.json
        exactstate certify strict.json --policy rules.txt
    """
    if policy is not None:
        if against is not None or output is not None:
            raise InvalidConfig("--policy compares a monitor with rules; it takes neither --against nor --output.")
        raise typer.Exit(_certify_policies(subject, policy, as_json))
    certificate: Certificate | None = None
    if subject.is_dir():
        verdict, certificate = _certify_run(subject, against)
        if certificate is not None and output is not None:
            certificate.write(output)
    else:
        if output is not None:
            raise InvalidConfig(
                f"a certificate is about the weights of a network, and {subject} has none; give the folder of its run."
            )
        verdict = _certify_machine(subject, against)
    if as_json:
        written = None if certificate is None or output is None else str(output)
        print_json({"subject": str(subject), **_row(verdict, certificate), "file": written})
    else:
        print_text(verdict.explain() if certificate is None else certificate.summary())
        if certificate is not None and output is not None:
            print_text(f"certificate written to {output}")
    raise typer.Exit(0 if verdict else 1)


def _certify_run(folder: Path, against: str | None) -> tuple[Verdict, Certificate | None]:
    from exactstate.train.run import certify_run
    from exactstate.train.verify import make_certificate

    run, verdict = certify_run(folder, against)
    title = run.config.title(run.task.name)
    return verdict, make_certificate(run.model, run.extracted, verdict, title=title) if verdict else None


def _certify_machine(file: Path, against: str | None) -> Verdict:
    from exactstate.certify import certify as compare
    from exactstate.runtime import load
    from exactstate.tasks import task

    machine = load(file)
    if against is None:
        raise InvalidConfig(f"{file} does not name its target; add --against TASK or --against FILE.")
    target = task(against).machine
    # outputs may name states or outputs of the target; a machine extracted from a run records which
    names, shared = set(machine.output_names), set(machine.output_names) & set(target.outputs)
    default = "outputs" if names <= set(target.outputs) or (shared and not names <= set(target.states)) else "states"
    if (machine.about.get("labels") or default) != "outputs":
        return compare(machine, target, labels="states")
    # outputs that the target never has are no error: they are wrong where they come
    more = tuple(name for name in machine.output_names if name not in target.outputs) if shared else ()
    return compare(machine, replace(target, outputs=target.outputs + more), labels="outputs")


def _certify_policies(file: Path, rules: Path, as_json: bool) -> int:
    """Each rule proved on all traces that the monitor allows, or refuted by a shortest one; the exit code."""
    from exactstate.automata import format_word
    from exactstate.automata.policy import read_policies
    from exactstate.learning.monitor import Monitor

    monitor = Monitor.load(file)
    found = [(rule.text, monitor.violation(rule)) for rule in read_policies(rules)]
    if as_json:
        rows = [{"policy": text, "proved": word is None, "trace": word and list(word)} for text, word in found]
        print_json({"subject": str(file), "policies": rows})
    else:
        for text, word in found:
            print_text(
                f"proved: {text!r} holds on every trace that the monitor allows, at every length" if word is None
                else f"refuted: {text!r}; the monitor allows {format_word(word)}"
            )  # fmt: skip
    return 0 if all(word is None for _, word in found) else 1


def _row(verdict: Verdict, certificate: Certificate | None) -> Row:
    failure = verdict.failure
    return {
        "certified": bool(verdict), "verdict": verdict.explain(), "labels": verdict.target.label_kind,
        "word": None if failure is None else list(failure.word), "kind": None if failure is None else failure.kind,
        "configurations": verdict.configurations, "task_states": verdict.task_states,
        "certificate": None if certificate is None else certificate.sha256,
        "proved": [] if certificate is None else list(certificate.proved),
    }  # fmt: skip
