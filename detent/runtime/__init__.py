"""The machine without the network: file format, fast interpreter, stream, emitters. No torch."""

from detent.runtime.files import load as load
from detent.runtime.files import save as save
from detent.runtime.heads import Heads as Heads
from detent.runtime.heads import Joint as Joint
from detent.runtime.machine import Machine as Machine
from detent.runtime.stream import Stream as Stream
