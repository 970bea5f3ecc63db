"""JavaScript modules against the interpreter, in Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from exactstate.runtime.export import to_javascript
from tests.runtime.export.programs import MACHINES, words

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="no Node")


def in_node(text: str, program: str, folder: Path) -> object:
    """What a program that imports the module as `m` puts out as JSON."""
    (folder / "machine.mjs").write_text(text)
    (folder / "main.mjs").write_text(
        f'import * as m from "./machine.mjs";\nconst answer = (() => {{ {program} }})();\n'
        "process.stdout.write(JSON.stringify(answer));\n"
    )
    done = subprocess.run([str(NODE), str(folder / "main.mjs")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", MACHINES)
def test_to_javascript_agrees_with_the_interpreter(name: str, tmp_path: Path) -> None:
    machine = MACHINES[name]
    spoken = words(machine)
    program = f"const words = {json.dumps(spoken)}; return words.map((w) => [m.outputIds(w), m.run(w), m.outputs(w)]);"
    wanted = [[machine.output_ids(word).tolist(), machine.run(word), machine.outputs(word)] for word in spoken]
    assert in_node(to_javascript(machine), program, tmp_path) == wanted


def test_to_javascript_keeps_names(tmp_path: Path) -> None:
    machine = MACHINES["ugly names"]
    names = in_node(to_javascript(machine), "return [m.symbols, m.states, m.outputNames, m.start];", tmp_path)
    assert names == [list(machine.symbols), list(machine.states), list(machine.output_names), machine.start]


@pytest.mark.parametrize("name", ["moore", "letters", "names with blanks"])
def test_to_javascript_splits_text_like_the_alphabet(name: str, tmp_path: Path) -> None:
    machine = MACHINES[name]
    texts = ["".join(machine.symbols) if machine.alphabet.by_letter else " \n ".join(machine.symbols * 3)]
    program = f"return {json.dumps(texts)}.map((t) => [m.encode(t), m.outputs(t)]);"
    wanted = [[machine.alphabet.encode(text).resolved().tolist(), machine.outputs(text)] for text in texts]
    assert in_node(to_javascript(machine), program, tmp_path) == wanted


def test_to_javascript_stream_continues(tmp_path: Path) -> None:
    machine = MACHINES["mealy"]
    word = words(machine)[0]
    program = (
        f"const w = {json.dumps(word)}; const s = new m.Stream(); const a = s.push(w.slice(0, 9));"
        "const t = new m.Stream(JSON.parse(JSON.stringify(s.position)));"
        "return [a.concat(t.push(w.slice(9))), t.position];"
    )
    said, position = in_node(to_javascript(machine), program, tmp_path)  # type: ignore[misc]
    assert said == machine.output_ids(word).tolist()
    assert position == {"state": machine.run(word), "symbols_read": len(word)}


@pytest.mark.parametrize(
    ("word", "place"), [("go what", 1), (["go", "what"], 1), ([0, 2], 1), ([-1], 0), ([0.5], 0), ([None], 0)]
)
def test_to_javascript_refuses_unknown_symbols(word: object, place: int, tmp_path: Path) -> None:
    program = f"try {{ m.run({json.dumps(word)}); }} catch (e) {{ return [e.name, e.message]; }}"
    name, message = in_node(to_javascript(MACHINES["moore"]), program, tmp_path)  # type: ignore[misc]
    assert name == "RangeError"
    assert message.startswith("unknown symbol ")
    assert message.endswith(f"at position {place}")


def test_to_javascript_is_safe_inside_html() -> None:
    text = to_javascript(MACHINES["ugly names"])
    assert "<script" not in text
    assert text.isascii()
