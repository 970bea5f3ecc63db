"""Machines as programs and grammars in other languages, each one file without dependencies.

`write(machine, path)` chooses the language by the extension: .c, .js and .mjs, .onnx, .ebnf and .gbnf, .lark. Names are
escaped so that no reader can misread them.
"""

from exactstate.runtime.export.c import to_c
from exactstate.runtime.export.grammar import read_grammar, verified_grammar
from exactstate.runtime.export.js import to_javascript
from exactstate.runtime.export.onnx import to_onnx
from exactstate.runtime.export.write import write

__all__ = ["read_grammar", "to_c", "to_javascript", "to_onnx", "verified_grammar", "write"]
