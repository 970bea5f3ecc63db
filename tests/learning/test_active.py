"""Active learning: the engines find the machine of a callable and of a process, within a budget, from a cache."""

from __future__ import annotations

import json
import sys
import time

import pytest

from exactstate.automata import distinguishing_word
from exactstate.errors import InvalidConfig, InvalidInput, NotLearned
from exactstate.learning import active
from exactstate.learning.active import ENGINES, ProcessSystem, learn_actively
from tests.learning.machines import handshake, sessions

PROGRAM = """
import sys
for line in sys.stdin:
    on, outputs = False, []
    for symbol in line.split():
        on = not on if symbol == "push" else on
        outputs.append("on" if on else "off")
    print(*outputs, flush=True)
"""


def answers(machine):
    return lambda word: [machine.outputs[o] for o in machine.output_ids(list(word)).tolist()]


@pytest.mark.parametrize("engine", ENGINES)
def test_learn_actively_finds_the_machine(engine):
    machine = handshake() if engine == "lstar" else sessions()
    learned = learn_actively(answers(machine), machine.symbols, engine=engine)
    assert distinguishing_word(learned.machine, machine) is None
    assert learned.order == engine


def test_learn_actively_resumes_from_its_cache(tmp_path):
    machine, cache = sessions(), tmp_path / "answers.jsonl"
    with pytest.raises(NotLearned, match="not learned within 20 queries; repeat the command with more"):
        learn_actively(answers(machine), machine.symbols, max_queries=20, cache=cache)
    assert len(cache.read_text().splitlines()) == 20
    asked = []

    def query(word):
        asked.append(tuple(word))
        return answers(machine)(word)

    learned = learn_actively(query, machine.symbols, cache=cache)
    assert distinguishing_word(learned.machine, machine) is None
    lines = [tuple(json.loads(line)["inputs"]) for line in cache.read_text().splitlines()]
    assert len(lines) == len(set(lines)) == 20 + len(asked)


def test_process_system_answers_and_is_refused(tmp_path):
    program = tmp_path / "system.py"
    program.write_text(PROGRAM)
    with ProcessSystem(f"{sys.executable} {program}", patience=600) as system:
        learned = learn_actively(system.query, ["push", "wait"])
        assert learned.states == 2
    with (
        ProcessSystem("sed -u s/.*/x/", patience=600) as short,
        pytest.raises(InvalidInput, match="'a b' with 1 outputs; 2 were"),
    ):
        short.query(["a", "b"])
    with ProcessSystem("true", patience=600) as silent, pytest.raises(InvalidInput, match="ended before it answered"):
        silent.query(["a"])
    with pytest.raises(InvalidConfig, match="cannot be started"):
        ProcessSystem("/nowhere/at/all")
    with ProcessSystem("sleep 600", patience=0.05) as slow, pytest.raises(InvalidInput, match="did not answer"):
        slow.query(["a"])


def test_process_system_with_an_answer_that_does_not_end(monkeypatch):
    monkeypatch.setattr(active, "MAX_ANSWER", 1 << 20)
    with (
        ProcessSystem("sh -c 'read word; cat /dev/zero'", patience=600) as endless,
        pytest.raises(InvalidInput, match="more than 1 MiB"),
    ):
        endless.query(["a"])
    slowly = f"{sys.executable} -c 'import time\nwhile True: print(1, end=\"\", flush=True); time.sleep(0.01)'"
    with ProcessSystem(slowly, patience=0.3) as slow, pytest.raises(InvalidInput, match=r"not answer 'a' within 0.3 s"):
        slow.query(["a"])


def test_process_system_with_a_line_too_many(tmp_path):
    (tmp_path / "twice.py").write_text("while input(): print('x', flush=True), print('y', flush=True)")

    def ask_often(system):
        for _ in range(100):
            system.query(["a"])
            time.sleep(0.01)

    with (
        ProcessSystem(f"{sys.executable} {tmp_path / 'twice.py'}", patience=600) as system,
        pytest.raises(InvalidInput, match=r"with more than one line|printed a line that nobody asked for"),
    ):
        ask_often(system)
    with ProcessSystem("cat", patience=600) as echo:
        assert echo.query(["a", "b"]) == ["a", "b"]
        for symbol in ("a\nb", "a b", ""):
            with pytest.raises(InvalidInput, match="holds a blank"):
                echo.query(["a", symbol])
        assert echo.query(["c"]) == ["c"]


def test_learn_actively_resumes_from_a_cache_that_was_cut(tmp_path):
    machine, cache = handshake(), tmp_path / "answers.jsonl"
    learn_actively(answers(machine), machine.symbols, cache=cache)
    whole = cache.read_bytes()
    cache.write_bytes(whole[:-5])
    learned = learn_actively(answers(machine), machine.symbols, cache=cache)
    assert distinguishing_word(learned.machine, machine) is None
    assert sorted(cache.read_bytes().splitlines()) == sorted(whole.splitlines())


def test_learn_actively_refuses_a_system_that_contradicts_itself():
    count = [0]

    def query(word):
        count[0] += 1
        return [str(count[0] % 2)] * len(word)

    with pytest.raises(InvalidInput, match=r"answered with .* before; active learning needs a deterministic system"):
        learn_actively(query, ["a", "b"])
