"""Packages import what they export on first use: what a fresh interpreter has loaded after an import."""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "matplotlib", "networkx")

LOAD = """
import json, pathlib, tempfile
from exactstate import runtime

fields = {"symbols": ["a"], "states": ["q"], "tables": [[0]], "start": 0, "outputs": ["x"], "readout": [0]}
path = pathlib.Path(tempfile.mkdtemp()) / "m.json"
path.write_text(json.dumps({"format": "exactstate-machine", "version": 1, "kind": "moore", **fields}))
assert runtime.load(path).outputs(["a"]) == ["x"]
"""


def heavy_after(program: str) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded once the program is done."""
    return loaded_after(program) & set(HEAVY)


def loaded_after(program: str) -> set[str]:
    """All modules that it has loaded."""
    report = "import sys; print('loaded:', *sys.modules, file=sys.stderr)"
    wrapped = f"import atexit; atexit.register(lambda: exec({report!r}))\n{program}"
    done = subprocess.run([sys.executable, "-c", wrapped], capture_output=True, text=True)
    loaded = [line for line in done.stderr.splitlines() if line.startswith("loaded:")]
    assert len(loaded) == 1, done.stderr
    assert done.returncode == 0, done.stderr
    return set(loaded[0].split()[1:])


@pytest.mark.parametrize(
    "package", ["automata", "tasks", "records", "errors", "native", "runtime", "learning", "certify", "report", "cli"]
)
def test_lazy_package_imports_nothing_heavy(package: str) -> None:
    assert heavy_after(f"import exactstate.{package}") == set()


@pytest.mark.parametrize(
    "module", ["report.page", "report.data", "train", "train.run_dir", "learning.passive_learning", "certify.certify"]
)
def test_module_imports_nothing_heavy(module: str) -> None:
    """The packages are lazy: the module that does the work is what must not need torch."""
    assert heavy_after(f"import exactstate.{module}") == set()


def test_import_exactstate_imports_nothing_heavy() -> None:
    assert (
        heavy_after(
            "import exactstate; dir(exactstate); exactstate.__version__; exactstate.Moore; exactstate.task('S3')"
        )
        == set()
    )


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["tasks", "--help"], ["figure", "--help"], ["check", "--help"]]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    assert (
        heavy_after(f"import sys; sys.argv = ['exactstate', *{arguments!r}]\nfrom exactstate.cli import main; main()")
        == set()
    )


def test_runtime_load_imports_no_dot_parser_drawing_or_factoring() -> None:
    loaded = {name for name in loaded_after(LOAD) if name.split(".")[0] == "exactstate"}
    assert "exactstate.automata.io.json_format" in loaded
    unneeded = ("dot_", "formats", "draw", "factor", "properties", "congruence", "minimize", "export", "tasks")
    assert not [name for name in loaded if any(part in name for part in unneeded)]
    assert len(loaded) <= 22


def test_heavy_after_detects_a_late_import() -> None:
    assert heavy_after("def late():\n    import networkx\nlate()") == {"networkx"}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A callable lazy package on disk: `verb` is also the name of its function, `twin` that of a submodule."""
    folder = tmp_path / "verb"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\n\nfrom exactstate._lazy import lazy\n\nif TYPE_CHECKING:\n"
        "    from verb.work import verb as verb\n    from verb.work import value as value\n"
        "    from verb.twin import twin as twin\n\n"
        "__all__ = lazy(__name__, {'work': ['verb', 'value'], 'twin': ['twin']}, packages=['inner'], call=True)\n"
    )
    (folder / "inner").mkdir()
    (folder / "inner" / "__init__.py").write_text("")
    (folder / "work.py").write_text("value = [1]\n\ndef verb(x, *, by=2):\n    return x * by\n")
    (folder / "twin.py").write_text("def twin():\n    return 'twin'\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "verb"
    for name in [name for name in sys.modules if name.split(".")[0] == "verb"]:
        del sys.modules[name]


def test_lazy_imports_an_export_on_first_use(package: str) -> None:
    module = importlib.import_module(package)
    assert "verb.work" not in sys.modules
    assert module.__all__ == ["twin", "value", "verb"]
    assert module.value is importlib.import_module("verb.work").value
    assert "verb.twin" not in sys.modules
    assert {"inner", "twin", "value", "verb"} <= set(dir(module))


def test_lazy_export_wins_over_a_submodule_of_its_name(package: str) -> None:
    module = importlib.import_module(package)
    importlib.import_module("verb.twin")
    assert module.twin() == "twin"


def test_lazy_package_can_be_called_as_its_function(package: str) -> None:
    module = importlib.import_module(package)
    assert module(3) == 6
    assert module(3, by=5) == 15
    assert str(inspect.signature(module)) == "(x, *, by=2)"


def test_lazy_package_refuses_other_names(package: str) -> None:
    with pytest.raises(AttributeError, match="module 'verb' has no attribute 'values'"):
        importlib.import_module(package).values  # noqa: B018


def test_lazy_imports_a_subpackage_on_first_use(package: str) -> None:
    module = importlib.import_module(package)
    assert "verb.inner" not in sys.modules
    assert module.inner is sys.modules["verb.inner"]


def test_lazy_package_is_copied_and_pickled_by_name(package: str) -> None:
    module = importlib.import_module(package)
    assert copy.deepcopy([module])[0] is module
    assert pickle.loads(pickle.dumps(module)) is module
    assert pickle.loads(cloudpickle.dumps(lambda: module(4)))() == 8


LAZY = sorted(path for path in (ROOT / "exactstate").rglob("__init__.py") if "lazy(__name__" in path.read_text("utf-8"))


@pytest.mark.parametrize("path", LAZY, ids=lambda path: path.parent.name)
def test_the_table_of_a_lazy_package_is_what_type_checkers_read(path: Path) -> None:
    package = ".".join(path.relative_to(ROOT).parent.parts)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    module = importlib.import_module(package)
    assert typed == module._exports | {name: f"{package}.{name}" for name in module._packages if name in typed}
    assert set(module.__all__) == set(typed)
    packages = {inner.parent.name for inner in path.parent.glob("*/__init__.py")}
    assert module._packages <= packages
    if package == "exactstate":
        assert module._packages == packages
