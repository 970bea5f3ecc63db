"""The machine without the network: load it, run it, stream it, export it. NumPy and compiled code, no torch.

`runtime.load("machine.json").outputs(["a", "b"])` gives the names of the outputs.
"""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.runtime.heads import Heads as Heads
    from exactstate.runtime.heads import Joint as Joint
    from exactstate.runtime.io import load as load
    from exactstate.runtime.io import save as save
    from exactstate.runtime.machine import Machine as Machine
    from exactstate.runtime.stream import Stream as Stream

__all__ = lazy(__name__)
