"""Emitted C compiles without a warning, and says what the interpreter says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from exactstate.automata import Mealy
from exactstate.errors import InvalidConfig
from exactstate.runtime import Machine
from exactstate.runtime.export import to_c
from exactstate.runtime.export.c import quoted
from exactstate.runtime.filter import Filter
from tests.runtime.export.programs import MACHINES, words
from tests.runtime.test_io import UGLY

COMPILER = shutil.which("gcc") or shutil.which("cc")
STRICT = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsanitize=undefined,address"]
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

DRIVER = """
#include <stdio.h>
int main(void) {{
    unsigned long length, t;
    while (scanf("%lu", &length) == 1) {{
        uint32_t state = {name}_start;
        for (t = 0; t < length; ++t) {{
            unsigned long number;
            {symbol} symbol;
            {output} said;
            if (scanf("%lu", &number) != 1) return 1;
            symbol = ({symbol})number;
            if ({name}_run(&symbol, 1, &state, &said) != 1) return 3;
            printf("%lu ", (unsigned long)said);
        }}
        printf("%lu\\n", (unsigned long)state);
    }}
    return 0;
}}
"""


def compiled(text: str, folder: Path, *options: str) -> Path:
    source, program = folder / "machine.c", folder / "machine"
    source.write_text(text)
    done = subprocess.run(
        [str(COMPILER), *STRICT, *options, str(source), "-o", str(program)], capture_output=True, text=True
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return program


def bits(count: int) -> str:
    return "uint8_t" if count <= 256 else "uint16_t"


@pytest.mark.parametrize("name", MACHINES)
def test_to_c_library_agrees_with_the_interpreter(name: str, tmp_path: Path) -> None:
    machine = MACHINES[name]
    driver = DRIVER.format(name="m", symbol=bits(machine.n_symbols), output=bits(len(machine.output_names)))
    program = compiled(to_c(machine, name="m") + driver, tmp_path, "-DM_WITHOUT_MAIN")
    spoken = words(machine)
    asked = "".join(f"{len(word)} {' '.join(map(str, word))}\n" for word in spoken)
    done = subprocess.run([program], input=asked, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    wanted = [[*machine.output_ids(word).tolist(), machine.run(word)] for word in spoken]
    assert [list(map(int, line.split())) for line in done.stdout.splitlines()] == wanted


@pytest.mark.parametrize("name", ["moore", "letters", "names with blanks", "mealy", "heads"])
def test_to_c_program_agrees_with_the_filter(name: str, tmp_path: Path) -> None:
    machine = MACHINES[name]
    program = compiled(to_c(machine), tmp_path)
    between = "" if machine.alphabet.by_letter else "  "
    lines = [between.join(machine.symbols[a] for a in word) for word in words(machine)]
    for text in ("\n".join(lines), "\n".join(lines) + "\n", "", "\n\n", f" \t{lines[1]} \r\n"):
        work = Filter(machine=machine)
        wanted = work.feed(text.encode()) + work.finish()
        done = subprocess.run([program], input=text.encode(), capture_output=True)
        assert (done.returncode, done.stderr, done.stdout) == (0, b"", wanted)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("moore", "go\nstop what go", b"machine: unknown symbol 'what' on line 2\n"),
        ("moore", "go extraordinary", b"machine: unknown symbol 'extr' on line 1\n"),
        ("letters", "01\n02", b"machine: unknown symbol '2' on line 2\n"),
        ("letters", "0\u00e4", "machine: unknown symbol '\u00e4' on line 1\n".encode()),
        ("names with blanks", "(0 1) (0 2)", b"machine: unknown symbol '(0' on line 1\n"),
    ],
)
def test_to_c_program_refuses_unknown_symbols(name: str, text: str, complaint: bytes, tmp_path: Path) -> None:
    done = subprocess.run([compiled(to_c(MACHINES[name]), tmp_path)], input=text.encode(), capture_output=True)
    assert (done.returncode, done.stderr) == (2, complaint)
    assert done.stdout.endswith(b"\n")


def test_to_c_finds_and_keeps_names(tmp_path: Path) -> None:
    """Every ugly name, asked for by its bytes, is found under its number and printed as it is."""
    machine = MACHINES["ugly names"]
    checks = "".join(
        f"if (m_find({quoted(name)}, {len(name.encode())}) != {a}) return {a + 1};\n"
        f"fwrite(m_symbol[{a}].text, 1, m_symbol[{a}].length, stdout);\n"
        for a, name in enumerate(UGLY)
    )
    driver = (
        f"#include <stdio.h>\nint main(void) {{\n{checks}return m_find({quoted('no such')}, 7) == -1 ? 0 : 99;\n}}\n"
    )
    program = compiled(to_c(machine, name="m") + driver, tmp_path, "-DM_WITHOUT_MAIN")
    done = subprocess.run([program], capture_output=True)
    assert done.returncode == 0
    assert done.stdout == "".join(UGLY).encode()


def test_to_c_escapes_names() -> None:
    """Whatever a name holds, outside of quotes the text is that of a harmless name of the same length."""
    evil = '*/ int evil(void) { return system("true"); } /* ??/'
    for name in (evil, "\\", '"', "\n#include <evil.h>\n", "a*/b", '\\\\"', "%n%s"):
        assert outside_quotes(only(name)) == outside_quotes(only("x" * len(name)))
    assert quoted('*/"\\?') == '"\\052\\057\\042\\134\\077"'


def only(name: str) -> str:
    return to_c(Machine.of(Mealy(symbols=(name,), tables=[[0]], states=(name,), outputs=(name,), readout=[[0]])))


def outside_quotes(text: str) -> str:
    """The text without string literals, and without what depends on whether the only symbol is one letter or word."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', text).partition("static uint32_t")[0]


def test_to_c_refuses_names_that_are_not_identifiers() -> None:
    assert "s4_step" in to_c(MACHINES["moore"], name="s4")
    for bad in ("", "4s", "a-b", "a b", "A", "a;b"):
        with pytest.raises(InvalidConfig, match="cannot begin identifiers"):
            to_c(MACHINES["moore"], name=bad)


def test_to_c_comparison_detects_a_wrong_table(tmp_path: Path) -> None:
    """A wrong table is seen: the comparison is one."""
    machine = MACHINES["moore"]
    wrong = to_c(machine).replace("    {1, 1},\n    {0, 0}", "    {1, 1},\n    {0, 1}")
    assert wrong != to_c(machine)
    done = subprocess.run([compiled(wrong, tmp_path)], input=b"go stop", capture_output=True)
    assert done.stdout != b"walk wait\n"
