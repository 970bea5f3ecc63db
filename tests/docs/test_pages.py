"""The pages of docs/: their code runs, their commands exist, and what they show as printed is printed."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from tests.docs.conftest import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *languages: str) -> list[str]:
    """The fenced code of a page in these languages."""
    return [text for language, text in FENCE.findall(page.read_text(encoding="utf-8")) if language in languages]


def scripts(page: Path) -> str:
    """The Python blocks that are not interpreter sessions, as one program."""
    return "\n".join(block for block in blocks(page, "python") if not block.startswith(">>>"))


def doctest_failures(page: Path) -> str:
    """Where the interpreter sessions of a page give something else than it says."""
    text = re.sub(r"^```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "page"}, page.name, str(page), 0)
    assert test.examples
    runner.run(test, out=failures.append)
    return "".join(failures)


SCRIPTS = [page for page in PAGES if scripts(page)]
SESSIONS = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", SCRIPTS, ids=lambda page: page.stem)
def test_scripts_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(scripts(page), str(page), "exec"), {"__name__": "page"})


@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: page.stem)
def test_sessions_of_a_page_give_what_it_says(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert doctest_failures(page) == ""


def test_a_session_that_gives_something_else_is_caught(tmp_path: Path) -> None:
    (tmp_path / "wrong.md").write_text("# Sums\n\n```python\n>>> 2 + 2\n5\n```\n")
    assert "Expected:\n    5\nGot:\n    4" in doctest_failures(tmp_path / "wrong.md")


def test_every_block_of_python_is_executed() -> None:
    """No page uses a language name that the tests above pass over."""
    languages = {language for page in PAGES for language, _ in FENCE.findall(page.read_text(encoding="utf-8"))}
    assert languages <= {"python", "console", "sh"}


@pytest.mark.parametrize(
    "verb",
    sorted({verb for page in PAGES for verb in re.findall(r"[`$] ?exactstate ([a-z]+)", page.read_text("utf-8"))}),
)
def test_every_verb_named_exists(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    from exactstate.cli._app import run

    assert run([verb, "--help"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    "module",
    sorted({name for page in PAGES for name in re.findall(r"`python -m ([a-z_.]+)", page.read_text("utf-8"))}),
)
def test_every_module_named_exists(module: str) -> None:
    path = ROOT / module.replace(".", "/")
    assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


@pytest.mark.parametrize("command", ["check results/certificates/S3-42.json"])
def test_what_a_page_shows_is_what_is_printed(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from exactstate.cli._app import run

    monkeypatch.chdir(ROOT)
    assert run(command.split()) == 0
    assert f"```console\n$ exactstate {command}\n{capsys.readouterr().out}```" in (DOCS / "certificates.md").read_text()


def test_every_file_of_results_is_listed() -> None:
    text = (DOCS / "results.md").read_text()
    rows = [path.name for path in (ROOT / "results").iterdir() if not path.name.startswith(".")]
    assert [name for name in rows if f"`results/{name}" not in text] == []
    assert [name for name in re.findall(r"`results/([\w.]+)", text) if name not in rows] == []


def test_the_recorded_session_is_that_of_record_py() -> None:
    from docs import record

    page = (DOCS / "first-ten-minutes.md").read_text()
    assert re.findall(r"^\$ (.+)$", page, re.MULTILINE) == [command for _, command in record.SESSION]
    assert "Traceback" not in page
    assert record._printed("echo one; echo two >&2; exit 3", str(DOCS)) == ["one", "two", "(exit code 3)"]
