"""Export a machine as a program, in the language of the file's extension."""

from __future__ import annotations

import os
from pathlib import Path

from exactstate.errors import unknown
from exactstate.records import write_atomically
from exactstate.runtime.machine import Machine


def write(machine: Machine, path: str | os.PathLike[str]) -> None:
    """Write the machine as a program, atomically: .c, .js or .mjs, .onnx; a DFA as a grammar: .ebnf, .gbnf, .lark."""
    match Path(path).suffix.lower():
        case ".c":
            from exactstate.runtime.export.c import to_c

            write_atomically(path, to_c(machine))
        case ".js" | ".mjs":
            from exactstate.runtime.export.js import to_javascript

            write_atomically(path, to_javascript(machine))
        case ".onnx":
            from exactstate.runtime.export.onnx import to_onnx

            write_atomically(path, to_onnx(machine))
        case ".ebnf" | ".gbnf" | ".lark" as suffix:
            from exactstate.runtime.export.grammar import DIALECTS, verified_grammar

            write_atomically(path, verified_grammar(machine.automaton, DIALECTS[suffix])[0])
        case suffix:
            raise unknown("extension", suffix, (".c", ".js", ".mjs", ".onnx", ".ebnf", ".gbnf", ".lark"))
