"""The import law: packages import only those below them, and a few doors stay shut because each protects a promise.

- No torch in what a sceptic or an engineer without a GPU runs: `automata`, `learning`, `tasks`, `runtime`, `certify`.
  Nor in `report`, which may import the three modules of `train` that need no torch, and no other.
- `extract` never sees the target: it imports neither tasks, nor certificates, nor training.
- `certify/check.py` imports nothing of exactstate: the file works alone.
- `exactstate` imports nothing of `paper`, `benchmarks`, `tests` or `web`.

Every import counts: inside functions, under `if TYPE_CHECKING:`, and written as a string for `import_module`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "exactstate"

ORDER = (
    "errors", "_text", "records", "_types", "number_formats", "_lazy", "native", "ops", "automata", "runtime", "nn",
    "baselines", "text", "tasks", "learning", "extract", "certify", "train", "evaluate", "report", "cli", "__main__",
    "integrations",
)  # fmt: skip
"""From the bottom: a package may import those that stand before it."""
NO_TORCH = {
    "errors", "_text", "records", "_types", "number_formats", "_lazy", "native", "automata", "runtime", "tasks",
    "learning", "certify", "report",
}  # fmt: skip
SHUT = {
    "extract": {"tasks", "learning", "certify"},
    "errors": set(ORDER),
    **{name: {"ops", "nn"} for name in NO_TORCH},
}
"""Packages below that may not be imported all the same."""
TORCH_FREE = {
    "exactstate.baselines.cells", "exactstate.extract.result", "exactstate.extract.interpret",
    "exactstate.train.run_dir", "exactstate.train.recipes", "exactstate.train.config",
}  # fmt: skip
"""Modules without torch in packages with torch; packages without torch may import these of them, and no other."""
WITH_TORCH = {"ops", "nn", "baselines", "text", "extract", "train", "evaluate", "cli", "integrations"}
OUTSIDE = {"paper", "benchmarks", "tests", "web", "docs", "examples"}
ALONE = {Path("certify/check.py")}
"""Files that import nothing of exactstate."""
ONLY_STANDARD_LIBRARY = {"errors", "_text", "records", "_lazy"}
STANDARD_LIBRARY = sys.stdlib_module_names | {"__future__"}


def imported(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything imported, and of every string that names a module of ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_module(node.value):
            yield node.lineno, node.value.replace(":", ".")
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            start = str(node.values[0].value)
            if is_module(start.rstrip(".")) and start.endswith("."):
                yield node.lineno, start.rstrip(".")


def is_module(text: str) -> bool:
    """Whether a string could be handed to `import_module`: dotted identifiers that begin with a package of ours."""
    words = text.replace(":", ".").split(".")
    return len(words) > 1 and words[0] in {"exactstate", *OUTSIDE} and all(word.isidentifier() for word in words)


def violations(root: Path) -> list[str]:
    """What is wrong with the imports of the package in this folder, one sentence each."""
    found = []
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if inside == Path("__init__.py"):
            continue
        package = inside.parts[0].removesuffix(".py")
        if package not in ORDER:
            found.append(f"{inside}: {package!r} is not a package of the import law")
            continue
        below = set(ORDER[: ORDER.index(package)]) - SHUT.get(package, set())
        dotted = ".".join(["exactstate", *inside.parts[:-1]])
        alone = package in NO_TORCH or f"{dotted}.{inside.stem}" in TORCH_FREE
        for line, name in imported(ast.parse(path.read_text(encoding="utf-8")), dotted):
            top, _, rest = name.partition(".")
            other = rest.partition(".")[0]
            if top in OUTSIDE and (root.parent / top).is_dir():
                found.append(f"{inside}, line {line}: exactstate may not import {top}")
            elif top == "exactstate" and inside in ALONE:
                found.append(f"{inside}, line {line}: this file imports nothing of exactstate")
            elif top == "exactstate" and other in ORDER and other != package and other not in below:
                found.append(f"{inside}, line {line}: {package} may not import {other}")
            elif top == "exactstate" and other not in ORDER and package not in ("cli", "__main__"):
                found.append(f"{inside}, line {line}: {package} may not import the front door")
            elif alone and other in WITH_TORCH and ".".join(name.split(".")[:3]) not in TORCH_FREE:
                found.append(f"{inside}, line {line}: {package} may not import {name}, which brings torch")
            elif top in ("torch", "safetensors") and alone:
                found.append(f"{inside}, line {line}: {package} works without torch")
            elif package in ONLY_STANDARD_LIBRARY and top not in STANDARD_LIBRARY | {"exactstate"}:
                found.append(f"{inside}, line {line}: {package} needs nothing but the standard library")
    return found


def test_imports_obey_the_import_law() -> None:
    assert violations(PACKAGE) == []


def test_import_law_lists_every_package() -> None:
    names = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert names - {"__init__", "__pycache__", "csrc"} == set(ORDER)


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        (
            "automata/bad.py",
            "from exactstate.tasks import task",
            "automata/bad.py, line 1: automata may not import tasks",
        ),
        ("automata/bad.py", "\nimport exactstate.nn.nfsm", "automata/bad.py, line 2: automata may not import nn"),
        (
            "tasks/bad.py",
            "def late():\n    from exactstate import ops",
            "tasks/bad.py, line 2: tasks may not import ops",
        ),
        ("tasks/bad.py", "from exactstate import NFSM", "tasks/bad.py, line 1: tasks may not import the front door"),
        ("runtime/bad.py", "from ..nn import NFSM", "runtime/bad.py, line 1: runtime may not import nn"),
        ("tasks/deep/bad.py", "from ... import nn", "tasks/deep/bad.py, line 1: tasks may not import nn"),
        ("tasks/bad.py", "import_module('exactstate.train')", "tasks/bad.py, line 1: tasks may not import train"),
        ("report/bad.py", "ROWS = 'exactstate.cli.figure:rows'", "report/bad.py, line 1: report may not import cli"),
        ("tasks/bad.py", "import_module(f'exactstate.nn.{name}')", "tasks/bad.py, line 1: tasks may not import nn"),
        ("train/bad.py", "import_module('paper.census')", "train/bad.py, line 1: exactstate may not import paper"),
        ("extract/bad.py", "from exactstate.tasks import task", "extract/bad.py, line 1: extract may not import tasks"),
        (
            "extract/bad.py",
            "from exactstate.certify import x",
            "extract/bad.py, line 1: extract may not import certify",
        ),
        (
            "certify/check.py",
            "from exactstate.errors import BrokenFile",
            "certify/check.py, line 1: this file imports nothing of exactstate",
        ),
        (
            "ops/bad.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from exactstate.nn import NFSM",
            "ops/bad.py, line 3: ops may not import nn",
        ),
        ("tasks/bad.py", "def late():\n    import torch", "tasks/bad.py, line 2: tasks works without torch"),
        (
            "report/bad.py",
            "from exactstate.train import TrainConfig",
            "report/bad.py, line 1: report may not import exactstate.train.TrainConfig, which brings torch",
        ),
        (
            "train/config.py",
            "from exactstate.nn import NFSM",
            "train/config.py, line 1: train may not import exactstate.nn.NFSM, which brings torch",
        ),
        ("train/run_dir.py", "import torch", "train/run_dir.py, line 1: train works without torch"),
        ("records.py", "import numpy", "records.py, line 1: records needs nothing but the standard library"),
        ("errors.py", "from exactstate import records", "errors.py, line 1: errors may not import records"),
        ("attic/old.py", "", "attic/old.py: 'attic' is not a package of the import law"),
    ],
)
def test_violations_finds_each_kind(tmp_path: Path, file: str, text: str, sentence: str) -> None:
    root = tmp_path / "exactstate"
    (tmp_path / "paper").mkdir()
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(text)
    assert violations(root) == [sentence]


def test_violations_accepts_what_is_allowed(tmp_path: Path) -> None:
    root = tmp_path / "exactstate"
    (root / "tasks").mkdir(parents=True)
    (root / "__init__.py").write_text("import torch")
    (root / "report").mkdir()
    (root / "report" / "good.py").write_text("from exactstate.train.run_dir import RunDir")
    ours = "from exactstate.automata import Moore\nfrom exactstate import errors"
    allowed = f"import numpy\n{ours}\nfrom .grammar import build_grammar"
    (root / "tasks" / "good.py").write_text(allowed)
    assert violations(root) == []
