"""The compiled kernels: found, declared, switched off, and never slower for lack of a word about it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from ctypes import c_double, c_int, c_int64, c_uint64, c_void_p
from pathlib import Path

import pytest

from exactstate import native
from exactstate.errors import BackendUnavailable, InvalidConfig
from exactstate.native import SIGNATURES


def test_every_declared_function_is_there():
    library = native.library()
    for name, (result, arguments) in SIGNATURES.items():
        assert getattr(library, name).argtypes == arguments
        assert getattr(library, name).restype is result


FUNCTION = re.compile(r"\b(void ?\*|void|int64_t|int|uint64_t) ?(exactstate_\w+)\(([^()]*)\) ?\{")
KINDS = {"int": c_int, "int64_t": c_int64, "uint64_t": c_uint64, "double": c_double, "void": None}


def kind(declared):
    """What ctypes calls a type of C."""
    return c_void_p if "*" in declared else KINDS[declared.split()[0]]


def declared_in(source):
    """name -> (result, arguments) of the functions that a C++ file exports, after the preprocessor."""
    command = ["g++", "-E", "-P", "-std=c++17", str(source)]
    text = " ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    return {
        name: (kind(result), [kind(argument) for argument in arguments.split(",") if argument])
        for result, name, arguments in FUNCTION.findall(text)
    }


@pytest.mark.skipif(shutil.which("g++") is None, reason="no preprocessor here")
def test_signatures_are_those_of_the_sources(tmp_path):
    found = {}
    for source in sorted(Path(native.__file__).with_name("csrc").glob("*.cpp")):
        found |= declared_in(source)
    assert found == SIGNATURES
    (tmp_path / "other.cpp").write_text("int64_t exactstate_tree_nodes(void* handle, int64_t more) { return 0; }")
    other = declared_in(tmp_path / "other.cpp")
    assert other == {"exactstate_tree_nodes": (c_int64, [c_void_p, c_int64])}
    assert other["exactstate_tree_nodes"] != SIGNATURES["exactstate_tree_nodes"]


def test_every_source_is_built():
    root = Path(native.__file__).parents[1]
    listed = (root / "setup.py").read_text("utf-8")
    sources = sorted(path.stem for path in (root / "exactstate" / "csrc").glob("*.cpp"))
    assert len(sources) > 5
    assert [name for name in sources if f'"{name}"' not in listed] == []


def run_native(**environment):
    call = [sys.executable, "-m", "exactstate.native"]
    return subprocess.run(call, env={**os.environ, **environment}, capture_output=True, text=True, check=True).stdout


def test_one_line_says_that_they_are_ready():
    assert run_native(EXACTSTATE_THREADS="3") == "exactstate: compiled kernels ready, 3 threads.\n"


def test_one_line_says_what_is_slower_without_them():
    said = run_native(EXACTSTATE_NATIVE="0")
    assert said.count("\n") == 1
    assert "machines are not learned from logs" in said
    assert "slower: the compiled kernels are switched off by EXACTSTATE_NATIVE=0; unset it" in said


def test_asking_for_what_is_missing_says_what_to_do(monkeypatch):
    monkeypatch.setattr(native, "_load", lambda: "the compiled kernels were not built; install a compiler")
    assert not native.available()
    with pytest.raises(BackendUnavailable, match=r"The compiled kernels were not built; install a compiler\."):
        native.library()


def test_a_library_of_another_version_warns(monkeypatch, tmp_path):
    (tmp_path / "kernels.so").write_bytes(b"not a library")
    monkeypatch.setenv("EXACTSTATE_KERNELS", str(tmp_path / "kernels.so"))
    with pytest.warns(RuntimeWarning, match="slower than it should be: the compiled kernels could not be loaded"):
        reason = native._load.__wrapped__()
    assert "then install exactstate again" in reason


def test_threads_are_at_least_one():
    with pytest.raises(InvalidConfig, match="at least one thread; got 0"):
        native.set_threads(0)
