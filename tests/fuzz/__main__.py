"""Fuzz a target with atheris: `python -m tests.fuzz dot --seconds 60`, or all of them: `python -m tests.fuzz`.

New inputs that reach new code go to build/fuzz/TARGET, beside the corpus in tests/fuzz/corpus, which is kept small; an
input that ends in a finding is written there as crash-... Run it again with `python -m tests.fuzz TARGET FILE`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
FOUND = HERE.parents[1] / "build" / "fuzz"
INSTRUMENTED = ("automata", "certify", "learning", "records", "runtime")
TIMEOUT, MEMORY, LARGEST = 20, 2048, 1 << 16
"""Seconds and megabytes that one input may take, and its bytes."""


def fuzz(name: str, seconds: int) -> None:
    """Run libFuzzer on one target in this process; it ends the process."""
    import atheris

    with atheris.instrument_imports(
        include=[
            "exactstate.automata",
            "exactstate.certify",
            "exactstate.learning",
            "exactstate.runtime",
            "exactstate.records",
        ]
    ):
        from tests.fuzz.targets import TARGETS

    (FOUND / name).mkdir(parents=True, exist_ok=True)
    options = [
        sys.argv[0], str(FOUND / name), str(HERE / "corpus" / name), f"-max_total_time={seconds}",
        f"-timeout={TIMEOUT}", f"-rss_limit_mb={MEMORY}", f"-max_len={LARGEST}", "-use_value_profile=1",
        f"-artifact_prefix={FOUND / name}/", "-print_final_stats=1",
    ]  # fmt: skip
    atheris.Setup(options, TARGETS[name])
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    names = sorted(path.name for path in (HERE / "corpus").iterdir())
    parser.add_argument("target", nargs="?", choices=names, help="default: all, one after the other")
    parser.add_argument("files", nargs="*", type=Path, help="inputs to run once, instead of fuzzing")
    parser.add_argument("--seconds", type=int, default=60, help="of all targets together")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.files:
        from tests.fuzz.targets import TARGETS

        for file in args.files:
            TARGETS[args.target](file.read_bytes())
        return 0
    if args.inside:
        fuzz(args.target, args.seconds)
    chosen, code = [args.target] if args.target else names, 0
    for name in chosen:
        begun = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "tests.fuzz",
            name,
            "--inside",
            f"--seconds={max(1, args.seconds // len(chosen))}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        runs = re.search(r"number_of_executed_units: *(\d+)", done.stderr)
        count = f"{int(runs[1]):,} inputs" if runs else "no inputs"
        finding = "" if done.returncode == 0 else f", FINDING:\n{done.stderr[-4000:]}"
        print(f"{name}: {count} in {time.monotonic() - begun:.0f} s{finding}", flush=True)
        code = max(code, int(done.returncode != 0))
    return code


if __name__ == "__main__":
    sys.exit(main())
