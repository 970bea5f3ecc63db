"""README.md: its code and commands run, its links and paths exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
INLINE = re.findall(r"`(?:\.venv/bin/)?exactstate ([^`]+)`", README)
IN_BLOCKS = [
    line.strip().removeprefix("$ ").removeprefix(".venv/bin/").removeprefix("exactstate ").partition("  #")[0].strip()
    for block in re.findall(r"```(?:sh|bash|console)\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if re.match(r"\s*(\$ )?(\.venv/bin/)?exactstate ", line)
]
COMMANDS = list(dict.fromkeys([*INLINE, *IN_BLOCKS]))
ONLY_HELP = {"demo"}
"""Tested elsewhere, at length."""


def test_the_code_runs() -> None:
    assert BLOCKS
    exec(compile("\n".join(BLOCKS), "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make ([a-z-]+)`", README))))
def test_every_make_target_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_command_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after another in one folder, so that a later one finds what an earlier one left."""
    from exactstate.automata import symmetric, write_machine
    from exactstate.cli._app import run

    for name in ("your-machine.dot", "old.dot", "new.dot"):
        write_machine(symmetric(3), tmp_path / name)
    (tmp_path / "log.jsonl").write_text('{"inputs": ["push", "push", "push"], "outputs": ["on", "off", "on"]}\n')
    (tmp_path / "words.txt").write_text("push push\n")
    monkeypatch.chdir(tmp_path)
    for command in COMMANDS:
        words = shlex.split(command.replace("RUN", "runs/S3-42-gradient"))
        # a verb that is only named, not called
        if words[0] in ONLY_HELP or (len(words) == 1 and words[0] not in ("tasks", "doctor", "--version")):
            words = [words[0], "--help"]
        assert run(words) == 0, command
        assert capsys.readouterr().out, command


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^):]+)\)", README))))
def test_every_link_target_exists(link: str) -> None:
    path, _, anchor = link.partition("#")
    assert (ROOT / path).exists()
    if anchor:
        headings = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_every_folder_of_the_tree_exists_and_is_listed() -> None:
    (tree,) = re.findall(r"^```\n(exactstate/ .*?)^```$", README, re.DOTALL | re.MULTILINE)
    listed, parent = set(), ""
    for line in tree.splitlines():
        if match := re.match(r"( *)([a-z_]+/) ", line):
            parent = parent if match[1] else match[2]
            listed.add(parent + match[2] if match[1] else match[2])
    assert [folder for folder in listed if not (ROOT / folder).is_dir()] == []
    packages = {f"exactstate/{path.parent.name}/" for path in (ROOT / "exactstate").glob("*/__init__.py")}
    assert packages <= listed
