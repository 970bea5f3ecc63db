"""`detent certify`: is what a network or a machine does the target, on every word?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from detent.cli._output import AsJson, print_json
from detent.errors import InvalidConfig

if TYPE_CHECKING:
    from detent.certify import Certificate, Verdict


def certify(
    subject: Annotated[
        Path, typer.Argument(metavar="RUN|MACHINE", help="A folder that `detent train` left, or a machine file.")
    ],
    against: Annotated[
        str | None, typer.Option(metavar="TASK|FILE", help="The target; for a run, its task if left out.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="CERT", help="Where the certificate of a run goes.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare a network or a machine with its target, on every word of every length.

    The machine of a run is read out of its weights anew, and a certificate of it says in which arithmetic rounding is
    proved to change nothing. Exit code 0 when it is right, 1 when it is not, with a shortest word that shows it.

    Examples:

        detent certify runs/S3-42-default
        detent certify runs/S3-42-default -o s3-certificate.json
        detent certify runs/S3-42-default/machine.json --against S3
        detent certify mine.dot --against theirs.json
    """
    certificate: Certificate | None = None
    if subject.is_dir():
        verdict, certificate = _of_run(subject, against)
        if certificate is not None and output is not None:
            certificate.write(output)
    else:
        if output is not None:
            raise InvalidConfig(
                f"a certificate speaks of the weights of a network, and {subject} has none; name the folder of its run."
            )
        verdict = _of_machine(subject, against)
    if as_json:
        written = None if certificate is None or output is None else str(output)
        print_json({"subject": str(subject), **_row(verdict, certificate), "file": written})
    else:
        print(verdict.explain() if certificate is None else certificate.summary())
        if certificate is not None and output is not None:
            print(f"kept in {output}")
    raise typer.Exit(0 if verdict else 1)


def _of_run(folder: Path, against: str | None) -> tuple[Verdict, Certificate | None]:
    from detent.train.certifying import certificate_of
    from detent.train.run import judge

    model, found, verdict, title = judge(folder, against)
    return verdict, certificate_of(model, found, verdict, title=title) if verdict else None


def _of_machine(file: Path, against: str | None) -> Verdict:
    from detent.certify import certify as compare
    from detent.runtime import load
    from detent.tasks import task

    machine = load(file)
    if against is None:
        raise InvalidConfig(f"{file} does not say what it should be; add --against TASK or --against FILE.")
    target = task(against).machine
    # what is said may be states or outputs of the target; a machine that was read out of a run remembers which
    said = set(machine.output_names)
    known = machine.about.get("labels") or ("outputs" if said <= set(target.outputs) else "states")
    return compare(machine, target, labels="outputs" if known == "outputs" else "states")


def _row(verdict: Verdict, certificate: Certificate | None) -> dict[str, Any]:
    failure = verdict.failure
    return {
        "certified": bool(verdict), "verdict": verdict.explain(), "labels": verdict.target.says,
        "word": None if failure is None else list(failure.word), "kind": None if failure is None else failure.kind,
        "configurations": verdict.configurations, "task_states": verdict.task_states,
        "certificate": None if certificate is None else certificate.sha256,
        "proved": [] if certificate is None else list(certificate.proved),
    }  # fmt: skip
