"""The machine without the network: file format, fast interpreter, stream, emitters. No torch."""

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
