"""`python -m benchmarks NAME`: run a benchmark, print its table, append to a dated report.

Exit codes: 0 done (and with --check every target met), 1 a target missed under --check or unequal results,
2 wrong call.
"""

from __future__ import annotations

import argparse
import json
import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.harness import Unequal
from benchmarks.printing import append, as_data, as_text
from exactstate.errors import ExactstateError, unknown
from exactstate.records import stamp

FOLDER = Path(__file__).parent
HELPERS = {"harness", "printing"}


def names() -> list[str]:
    modules = (module.name for module in pkgutil.iter_modules([str(FOLDER)]))
    return sorted(name for name in modules if not name.startswith("_") and name not in HELPERS)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("name", metavar="NAME", help=f"one of: {', '.join(names())}")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON instead of the table")
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed, and name it")
    parser.add_argument("--quick", action="store_true", help="a rough measurement within a minute")
    parser.add_argument("--reports", type=Path, default=FOLDER / "reports", metavar="FOLDER", help="where reports go")
    options = parser.parse_args(arguments)
    try:
        if options.name not in names():
            raise unknown("benchmark", options.name, names())
        report = import_module(f"benchmarks.{options.name}").run(quick=options.quick)
    except ExactstateError as error:
        return _fail(str(error), 2)
    except Unequal as error:
        return _fail(str(error), 1)
    made = stamp()
    path = append(options.reports, options.name, report, made)
    if options.json:
        print(json.dumps(as_data(report, made), indent=2))
    else:
        print(as_text(report))
        print(f"report in {path}")
    if options.check and report.missed():
        return _fail("missed: " + "; ".join(report.missed()), 1)
    return 0


def _fail(sentence: str, code: int) -> int:
    print(f"benchmarks: {sentence}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
