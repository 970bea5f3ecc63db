"""`exactstate run`: options, pipes, unknown symbols, memory; and a text in English against a dictionary."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exactstate.automata import Moore, symmetric, tomita
from exactstate.cli._app import run
from exactstate.runtime import Machine

PROGRAM = [sys.executable, "-m", "exactstate", "run"]
TSO3 = Path(__file__).parents[2] / "results" / "machines" / "TSO3-42.json"
PEOPLE, ITEMS = ("alice", "bob", "charlie"), ("ring", "key", "coin")


@pytest.fixture
def light(tmp_path: Path) -> Path:
    machine = Moore(
        symbols=("go", "stop"), states=("red", "green"), tables=np.array([[1, 1], [0, 0]]),
        outputs=("wait", "walk"), readout=np.array([0, 1]),
    )  # fmt: skip
    Machine.of(machine).save(tmp_path / "light.json")
    return tmp_path / "light.json"


def filtered(arguments: list[str | Path], text: str | bytes) -> tuple[int, str, str]:
    data = text.encode() if isinstance(text, str) else text
    done = subprocess.run([*PROGRAM, *map(str, arguments)], input=data, capture_output=True)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(
    ("options", "output"),
    [
        ([], "walk wait\nwalk\n"),
        (["--final"], "walk\n"),
        (["-l", "-f", "--states"], "red\ngreen\n"),
        (["--at", "go"], "walk\nwalk\n"),
        (["--strategy", "numpy"], "walk wait\nwalk\n"),
        (["--json"], '{"line": 1, "outputs": ["walk", "wait"]}\n{"line": 2, "outputs": ["walk"]}\n'),
        (["--json", "--final"], '{"symbols": 3, "state": "green", "output": "walk"}\n'),
    ],
)
def test_run_prints(options: list[str], output: str, light: Path, tmp_path: Path) -> None:
    assert filtered([light, *options], "go stop\ngo\n") == (0, output, "")
    (tmp_path / "words.txt").write_text("go stop\ngo\n")
    assert filtered([light, tmp_path / "words.txt", *options], "") == (0, output, "")


def test_run_of_every_format_of_machine_file(light: Path, tmp_path: Path) -> None:
    from exactstate.runtime import load

    for name in ("light.exactstate", "light.dot"):
        load(light).save(tmp_path / name)
        assert filtered([tmp_path / name], "go") == (0, "walk\n", "")
    Machine.of(symmetric(3)).save(tmp_path / "s3.json")
    assert filtered([tmp_path / "s3.json", "--final"], "(0 1) (1 2) (0 1) (1 2) (0 1) (1 2)") == (0, "e\n", "")


def test_run_names_an_unknown_symbol_after_the_outputs_before_it(light: Path) -> None:
    code, out, err = filtered([light], "go stop\ngo sotp go\n")
    assert code == 2
    assert out == "walk wait\nwalk\n"
    assert err == (
        "exactstate: unknown symbol 'sotp' on line 2, word 2. Did you mean 'stop'? This machine reads go, stop.\n"
    )


def test_run_skips_unknown_symbols(light: Path) -> None:
    assert filtered([light, "--skip-unknown"], "go fly stop\nfly") == (
        0, "walk wait\n", "exactstate: note: 2 unknown symbols were skipped.\n",
    )  # fmt: skip


def test_run_into_a_closed_pipe(light: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*PROGRAM, light], input=b"go\n" * 1000, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_run_prints_a_line_before_it_reads_the_next(light: Path) -> None:
    with subprocess.Popen([*PROGRAM, light], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for line, answer in ((b"go go\n", b"walk walk\n"), (b"stop\n", b"wait\n")):
            program.stdin.write(line)
            program.stdin.flush()
            assert program.stdout.readline() == answer
        program.stdin.close()
        assert program.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing.json"], "missing.json: there is no such file."),
        (["{light}", "missing.txt"], "missing.txt: no such file or directory."),
        (["{light}", "--strategy", "shufle"], "unknown strategy 'shufle'. Did you mean 'shuffle'?"),
        (["{light}", "--strategy", "heads"], "strategy 'heads' is not possible here: this machine was made without"),
        (["{light}", "--at", "stp"], "unknown symbol 'stp' to answer at. Did you mean 'stop'?"),
        (["{folder}"], "{folder}: it cannot be read: is a directory."),
        (["{light}", "{folder}"], "{folder}: this is a folder; expected a text file."),
        ([], "missing argument 'MACHINE'."),
    ],
)
def test_run_of_wrong_calls(
    arguments: list[str], sentence: str, light: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {"light": light, "folder": tmp_path}
    assert run(["run", *(argument.format(**named) for argument in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("exactstate: " + sentence.format(**named))
    assert err.count("\n") == 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system does not tell")
def test_run_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    """Thirty times the text in one line without end, and at most a little more memory."""
    Machine.of(tomita(3)).save(tmp_path / "t.json")
    program = (
        "import sys; from exactstate.cli._app import run; code = run(['run', sys.argv[1], '--final', '--json']);"
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'));"
        "print(code, status['VmHWM'].split()[0], file=sys.stderr)"
    )
    peaks = []
    for count in (1, 30):
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "t.json")], input=b"01101" * 200_000 * count,
            capture_output=True, check=True,
        )  # fmt: skip
        assert json.loads(done.stdout)["symbols"] == 1_000_000 * count
        code, peak = done.stderr.split()
        assert code == b"0"
        peaks.append(int(peak))
    assert peaks[1] < peaks[0] + 30_000  # KiB; the text itself would be 30 times that, as numbers 240


@pytest.mark.slow
def test_run_of_a_million_sentences(tmp_path: Path) -> None:
    """Every question of many stories, answered from text, against the task's own labels."""
    from exactstate.tasks import task

    tso = task("TSO3")
    batch = tso.sample(50_000, 100, np.random.default_rng(0))
    names = np.array(tso.machine.symbols)
    (tmp_path / "stories.txt").write_text("\n".join(map(" ".join, names[batch.inputs].tolist())))
    Machine.of(tso.machine).save(tmp_path / "tso3.json")
    code, out, err = filtered([tmp_path / "tso3.json", tmp_path / "stories.txt", "-l", "-f", "-s"], "")
    assert (code, err) == (0, "")
    wanted = [tso.machine.states[state] for state in batch.states[:, -1]]
    assert out.splitlines() == wanted


def story(sentences: int, seed: int, *, neat: bool) -> tuple[str, list[str]]:
    """(a text of so many sentences, the answers to its questions), computed with a dictionary."""
    chance, holder = random.Random(seed), dict[str, str]()
    lines, answers = [], []
    for _ in range(sentences):
        left = [item for item in ITEMS if item not in holder]
        empty = [one for one in PEOPLE if one not in holder.values()]
        kind = chance.random()
        if left and empty and (kind < 0.3 or not holder):
            item, one = chance.choice(left), chance.choice(empty)
            holder[item] = one
            lines.append(f"{one} has the {item} .")
        elif kind < 0.8:
            one, other = chance.sample(PEOPLE, 2)
            holder = {item: {one: other, other: one}.get(who, who) for item, who in holder.items()}
            lines.append(f"{one} swaps with {other} .")
        else:
            item = chance.choice(sorted(holder))
            lines.append(f"who has the {item} ?")
            answers.append(holder[item])
    if not neat:
        lines = [line.capitalize().replace(" .", ".").replace(" ?", "?") for line in lines]
    return "\n".join(lines) + "\n", answers


def answers_to(path: Path) -> tuple[int, list[str], str]:
    done = subprocess.run([*PROGRAM, str(TSO3), str(path)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.split(), done.stderr


@pytest.mark.parametrize("neat", [True, False])
def test_run_of_a_story_of_two_thousand_sentences(neat: bool, tmp_path: Path) -> None:
    text, answers = story(2_000, 5, neat=neat)
    (tmp_path / "story.txt").write_text(text)
    assert len(answers) > 300
    assert answers_to(tmp_path / "story.txt") == (0, answers, "")


@pytest.mark.slow
def test_run_of_a_story_of_two_hundred_thousand_sentences(tmp_path: Path) -> None:
    text, answers = story(200_000, 6, neat=True)
    (tmp_path / "story.txt").write_text(text)
    assert answers_to(tmp_path / "story.txt") == (0, answers, "")


def test_run_of_a_story_with_an_unknown_word_and_an_invalid_sentence(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("alice has the key .\nwho has the key ?\nbob swops with alice .\n")
    code, printed, error = answers_to(tmp_path / "story.txt")
    assert (code, printed) == (2, ["alice"])
    assert "unknown symbol 'swops' on line 3, word 2. Did you mean 'swaps'?" in error
    (tmp_path / "story.txt").write_text("alice has the key .\nbob has the key .\n")
    code, printed, _ = answers_to(tmp_path / "story.txt")
    assert (code, " ".join(printed)) == (0, "(not understood)")


def test_run_reads_files_as_one_text(light: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("go st")
    (tmp_path / "b").write_text("op go\nstop")
    together = filtered([light], "go stop go\nstop")
    assert filtered([light, tmp_path / "a", tmp_path / "b"], "") == together
    assert together == (0, "walk wait walk\nwait\n", "")


def test_run_on_a_cluster_needs_files(light: Path) -> None:
    code, out, error = filtered([light, "--cluster", "local"], "go")
    assert (code, out) == (2, "")
    assert "a cluster reads files, not standard input" in error
