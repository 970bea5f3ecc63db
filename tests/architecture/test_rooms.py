"""Imports go only downstairs, and only to the rooms named: every import of every file, inside functions too.

The table is the one of the design. The front door, `detent/__init__.py`, opens rooms on request and is no room itself.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "detent"

FLOORS_0_TO_4 = {
    "errors", "records", "native", "automata", "scan", "runtime", "layers", "tasks", "models", "certification",
    "evaluation", "theory", "training", "extraction",
}  # fmt: skip
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "records": {"errors"},
    "native": {"errors"},
    "automata": {"native", "records", "errors"},
    "scan": {"native", "errors"},
    "runtime": {"native", "automata", "records", "errors"},
    "layers": {"scan", "records", "errors"},
    "tasks": {"automata", "errors"},
    "models": {"layers", "errors"},
    "certification": {"automata", "runtime", "records", "errors"},
    "evaluation": {"tasks", "records", "errors"},
    "theory": {"automata", "scan", "layers", "records", "errors"},
    "training": {"automata", "scan", "tasks", "models", "layers", "records", "errors"},
    "extraction": {"automata", "runtime", "layers", "models", "errors"},
    "recipes": FLOORS_0_TO_4,
    "figures": {"records", "automata", "errors"},
    "report": {"automata", "runtime", "tasks", "certification", "records", "errors"},
    "cli": FLOORS_0_TO_4 | {"recipes", "figures", "report", "front-door"},
    "__main__": {"cli"},
}
NO_TORCH = {
    "errors", "records", "native", "automata", "runtime", "tasks", "certification", "evaluation", "figures", "report",
}  # fmt: skip
ONLY_STANDARD_LIBRARY = {"errors", "records"}
STANDARD_LIBRARY = sys.stdlib_module_names | {"__future__"}


def modules_named(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything imported: statements, and `import_module` of a written name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def complaints(root: Path) -> list[str]:
    """What is wrong with the imports of the package in this folder, one sentence each."""
    found = []
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if inside == Path("__init__.py"):
            continue
        room = inside.parts[0].removesuffix(".py")
        if room not in MAY_IMPORT:
            found.append(f"{inside}: {room!r} is not a room of the house")
            continue
        package = ".".join(["detent", *inside.parts[:-1]])
        for line, name in modules_named(ast.parse(path.read_text(encoding="utf-8")), package):
            top, _, rest = name.partition(".")
            if top == "detent":
                other = rest.partition(".")[0]
                other = other if other in MAY_IMPORT else "front-door"
                if other != room and other not in MAY_IMPORT[room]:
                    found.append(f"{inside}, line {line}: {room} may not import {other}")
            elif top == "torch" and room in NO_TORCH:
                found.append(f"{inside}, line {line}: {room} lives without torch")
            elif room in ONLY_STANDARD_LIBRARY and top not in STANDARD_LIBRARY:
                found.append(f"{inside}, line {line}: {room} needs nothing but the standard library")
    return found


def test_imports_go_only_downstairs() -> None:
    assert complaints(PACKAGE) == []


def test_the_walk_sees_the_house() -> None:
    assert {"errors.py", "records.py", "automata", "tasks", "cli"} <= {path.name for path in PACKAGE.iterdir()}


def test_no_two_rooms_import_each_other() -> None:
    for room, others in MAY_IMPORT.items():
        for other in others - {"front-door"}:
            assert room not in MAY_IMPORT[other]


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("automata/bad.py", "from detent.tasks import task", "automata/bad.py, line 1: automata may not import tasks"),
        ("automata/bad.py", "\nimport detent.layers.nfsm", "automata/bad.py, line 2: automata may not import layers"),
        ("tasks/bad.py", "def late():\n    from detent import scan", "tasks/bad.py, line 2: tasks may not import scan"),
        ("tasks/bad.py", "from detent import NFSM", "tasks/bad.py, line 1: tasks may not import front-door"),
        ("tasks/bad.py", "from ..records import read", "tasks/bad.py, line 1: tasks may not import records"),
        ("tasks/deep/bad.py", "from ... import models", "tasks/deep/bad.py, line 1: tasks may not import models"),
        ("tasks/bad.py", "import_module('detent.training')", "tasks/bad.py, line 1: tasks may not import training"),
        (
            "scan/bad.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from detent.layers import NFSM",
            "scan/bad.py, line 3: scan may not import layers",
        ),
        ("tasks/bad.py", "def late():\n    import torch", "tasks/bad.py, line 2: tasks lives without torch"),
        ("records.py", "import numpy", "records.py, line 1: records needs nothing but the standard library"),
        ("errors.py", "from detent import records", "errors.py, line 1: errors may not import records"),
        ("attic/old.py", "", "attic/old.py: 'attic' is not a room of the house"),
    ],
)
def test_the_walk_barks(tmp_path: Path, file: str, text: str, sentence: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert complaints(tmp_path) == [sentence]


def test_the_walk_is_quiet_about_what_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "__init__.py").write_text("import torch")
    allowed = "import numpy\nfrom detent.automata import Moore\nfrom detent import errors\nfrom .grammar import spell"
    (tmp_path / "tasks" / "good.py").write_text(allowed)
    assert complaints(tmp_path) == []
