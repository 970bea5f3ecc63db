"""The machine without the network: load it, run it, stream it, export it. NumPy and compiled code, no torch.

`runtime.load("machine.json").outputs(["a", "b"])` gives the names of the outputs.
"""

from exactstate.runtime.heads import Heads, Joint
from exactstate.runtime.io import load, save
from exactstate.runtime.machine import Machine
from exactstate.runtime.stream import Stream

__all__ = ["Heads", "Joint", "Machine", "Stream", "load", "save"]
