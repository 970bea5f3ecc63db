"""The pages are built, their links lead somewhere, their code runs, their commands exist."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import names  # noqa: E402
import pages  # noqa: E402

GUIDES = (
    "tour", "in-your-model", "your-machine", "your-task", "heads", "certificates", "when-not", "performance", "results",
    "report", "index", "first-ten-minutes",
)  # fmt: skip
PAGES = [DOCS / f"{name}.md" for name in GUIDES]
COMMANDS = sorted(
    {command for page in DOCS.rglob("*.md") for command in re.findall(r"`detent ([a-z]+)", page.read_text())}
)


def code(page: Path) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))


@pytest.mark.parametrize("page", [page for page in PAGES if code(page)], ids=lambda page: page.stem)
def test_the_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code(page), str(page), "exec"), {"__name__": "page"})


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_verb_named_exists(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    from detent.cli._app import run

    assert run([verb, "--help"]) == 0
    capsys.readouterr()


def test_every_page_is_built_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    built = pages.build(tmp_path)
    made = {str(path.relative_to(tmp_path)) for path in built}
    assert {f"docs/{path.stem}.html" for path in PAGES} <= made
    for page in built:
        for link in re.findall(r'(?:href|src)="([^"#]+)', page.read_text()):
            if not re.match("[a-z]+:", link):
                assert (page.parent / link).is_file(), (page, link)


def test_a_dead_link_ends_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("[here](there.md)")
    with pytest.raises(pages.DeadLink, match=r"page.md: the link 'there.md' leads nowhere\."):
        pages.pages(tmp_path / "page.md")


def test_every_public_name_has_a_sentence() -> None:
    from importlib import import_module

    for room in names.ROOMS:
        for name, value in names.offered(import_module(f"detent.{room}")):
            assert names.is_documented(value), f"detent.{room}.{name}"


def test_the_page_of_names_has_them_all() -> None:
    from importlib import import_module

    import detent

    text = names.names_text()
    for room in names.ROOMS:
        entries = text.partition(f"\n## detent.{room}\n")[2].partition("\n## ")[0]
        public = [name for name, _ in names.offered(import_module(f"detent.{room}"))]
        assert re.findall(r"^### (\w+)$", entries, re.MULTILINE) == public
    for name in detent.__all__:
        assert f"[`detent.{name}`](#{name.lower()}): " in text
        assert f"\n### {name}\n" in text


def test_an_entry_reads_well() -> None:
    text = names.names_text()
    entry = text.partition("\n### NFSM\n")[2].partition("\n### ")[0]
    assert "    *," in entry
    assert "- `step`: " in entry
    assert "Define the computation performed at every call." not in text
    assert '    >>> task("s3").machine.n_states\n    6\n' in text


def test_links_within_pages_lead_to_headings(tmp_path: Path) -> None:
    wanted = 0
    for page in pages.build(tmp_path):
        content = page.read_text()
        places = re.findall(r' id="([^"]+)"', content)
        assert len(places) == len(set(places)), page
        for link in re.findall(r'href="#([^"]+)"', content):
            wanted += 1
            assert link in places, (page, link)
    assert wanted > 20


@pytest.mark.parametrize("verb", ["check results/certificates/S3-42.json"])
def test_what_a_page_shows_is_what_is_printed(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from detent.cli._app import run

    monkeypatch.chdir(DOCS.parent)
    assert run(verb.split()) == 0
    assert f"```console\n$ detent {verb}\n{capsys.readouterr().out}```" in (DOCS / "certificates.md").read_text()


def test_every_file_of_results_is_told_of() -> None:
    text = (DOCS / "results.md").read_text()
    rows = [path.name for path in (DOCS.parent / "results").iterdir() if not path.name.startswith(".")]
    assert [name for name in rows if f"`results/{name}" not in text] == []
    assert [name for name in re.findall(r"`results/([\w.]+)", text) if name not in rows] == []


def test_the_record_is_of_this_session() -> None:
    import record

    page = (DOCS / "first-ten-minutes.md").read_text()
    assert re.findall(r"^\$ (.+)$", page, re.MULTILINE) == [command for _, command in record.SESSION]
    assert "Traceback" not in page
    assert record._printed("echo one; echo two >&2; exit 3", str(DOCS)) == ["one", "two", "(exit code 3)"]
