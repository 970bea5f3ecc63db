"""The machine without the network: load it, run it, stream it, export it. NumPy and compiled code, no torch.

`runtime.load("machine.json").outputs(["a", "b"])` gives the names of the outputs.
"""

from typing import TYPE_CHECKING

from detent._lazy import lazy

if TYPE_CHECKING:
    from detent.runtime.heads import Heads as Heads
    from detent.runtime.heads import Joint as Joint
    from detent.runtime.io import load as load
    from detent.runtime.io import save as save
    from detent.runtime.machine import Machine as Machine
    from detent.runtime.stream import Stream as Stream

__all__ = lazy(__name__)
