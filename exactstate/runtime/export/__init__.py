"""Machines as programs in other languages, each one file without dependencies.

`write(machine, path)` chooses the language by the extension: .c, .js and .mjs, .onnx. Names are escaped so that no
compiler can misread them.
"""

from exactstate.runtime.export.c import to_c
from exactstate.runtime.export.js import to_javascript
from exactstate.runtime.export.onnx import to_onnx
from exactstate.runtime.export.write import write

__all__ = ["to_c", "to_javascript", "to_onnx", "write"]
