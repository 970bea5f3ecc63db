"""Machines as programs in other languages, each one file without dependencies.

`write(machine, path)` chooses the language by the extension: .c, .js and .mjs, .onnx. Names are escaped so that no
compiler can misread them.
"""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.runtime.export.c import to_c as to_c
    from exactstate.runtime.export.js import to_javascript as to_javascript
    from exactstate.runtime.export.onnx import to_onnx as to_onnx
    from exactstate.runtime.export.write import write as write

__all__ = lazy(__name__)
