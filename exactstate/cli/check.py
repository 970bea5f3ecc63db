"""`exactstate check`: check certificates, without the network and without torch unless weights are given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactstate.cli._output import AsJson, print_json, print_text, with_progress
from exactstate.errors import BrokenFile

if TYPE_CHECKING:
    from exactstate.certify.check import Report


def check(
    files: Annotated[list[Path], typer.Argument(metavar="CERTIFICATE...", help="Certificates that exactstate wrote.")],
    weights: Annotated[
        Path | None,
        typer.Option(metavar="RUN|FILE", help="Extract these weights again (a run, or .safetensors) and compare."),
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="TASK|FILE", help="Compare the target inside with this task or machine.")
    ] = None,
    verify: Annotated[
        Path | None, typer.Option(metavar="KEY", help="Verify the signature beside it, by this public key of SSH.")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY", help="If all is well, sign it with this private key of SSH.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check certificates: the hash, every transition, every output, margins against rounding errors.

    By itself this establishes that the file is consistent: the machine inside computes the target inside. `--weights`
    establishes that it is about these weights, `--against` that its target is that task, `--verify` who signed it.
    Exit code 0 when all of that holds, 1 when something does not (with the reason), 2 when a file is not a certificate.

    Examples:

        exactstate check runs/S3-42-gradient/certificate.json
        exactstate check certificate.json --weights runs/S3-42-gradient --against S3
        exactstate check results/certificates/*.json --json
        exactstate check certificate.json --sign key
        exactstate check certificate.json --verify key.pub
    """
    from exactstate.certify.check import row_of, verdict_of

    contents = [_read(file) for file in files]
    results = []
    for file, content in with_progress(list(zip(files, contents, strict=True)), name=lambda one: one[0].name):
        report, established = _checked(file, content, weights, against, verify)
        if report and sign is not None:
            from exactstate.certify.sign import sign as write_signature

            established["signed"] = f"signed: {write_signature(file, sign)}"
        results.append((file, content, report, established))
    if as_json:
        print_json([{**row_of(file, content, report), "established": list(found)}
                    for file, content, report, found in results])  # fmt: skip
    else:
        print_text("\n\n".join(verdict_of(file, content, report, _lines(found))
                                for file, content, report, found in results))  # fmt: skip
    raise typer.Exit(0 if all(report for _, _, report, _ in results) else 1)


MISSING = {"weights": "which weights it is about (--weights)", "target": "which task its target is (--against)"}


def _lines(established: dict[str, str]) -> list[str]:
    """What was established beyond consistency, and one line about what was not; empty if nothing was asked for."""
    lines = list(established.values())[1:]
    missing = [sentence for name, sentence in MISSING.items() if name not in established]
    return [*lines, f"not established: {', '.join(missing)}"] if lines and missing else lines


def _checked(
    file: Path, content: dict[str, Any], weights: Path | None, against: str | None, key: Path | None
) -> tuple[Report, dict[str, str]]:
    """(the result of the check, what was established, by name and in words)."""
    from exactstate.certify.check import Report
    from exactstate.certify.check import check as check_content

    if not (report := check_content(content)):
        return report, {}
    findings, established = [], {"consistent": ""}
    for name, found, difference in _comparisons(file, content, weights, against, key):
        if difference is None:
            established[name] = f"established: {found}"
        else:
            findings.append(f"the file is consistent, but {difference}.")
    return Report(tuple(findings)), established


def _comparisons(
    file: Path, content: dict[str, Any], weights: Path | None, against: str | None, key: Path | None
) -> Iterator[tuple[str, str, str | None]]:
    """What was asked for: its name, the sentence if it holds, and why it does not or None."""
    if weights is not None:
        from exactstate.train.recheck import difference_from_weights, weights_of

        path = weights_of(weights, content)
        why = difference_from_weights(content, path)
        found = f"it is about these weights: {path} (tables, margins and bounds computed again)"
        yield "weights", found, None if why is None else f"it is not about the weights in {path}: {why}"
    if against is not None:
        from exactstate.certify.check import answers_alone
        from exactstate.certify.target import difference_from_task
        from exactstate.tasks import task

        named = task(against)
        why = difference_from_task(content, named)
        words = "every word" if content["grammar"] is None else "every word of its grammar"
        same = f"the same {content['target']['says']} after {words}"
        if answers_alone(content):
            same = f"the same answers in {words}; states are not compared"
        found = f"its target is {named.name}: {same}"
        yield "target", found, None if why is None else f"its target is not {named.name}: {why}"
    if key is not None:
        from exactstate.certify.sign import verify

        why = verify(file, key)
        yield "signature", f"it was signed with the key {key}", None if why is None else f"{why}"


def _read(file: Path) -> dict[str, Any]:
    from exactstate.certify.check import Unreadable, read

    try:
        return read(file)
    except Unreadable as error:
        raise BrokenFile(file, error.reason, error.line) from None
