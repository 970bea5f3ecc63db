"""Machine files: DOT as LearnLib, AutomataWiki and AALpy write it, and JSON.

`read_machine(path)` and `write_machine(machine, path)` choose the format by the extension; `to_dot`, `parse_dot` and so
on convert text. Reading what was written gives an equal machine. In DOT, unusual names are percent-encoded; JSON holds
integer tables.
"""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.automata.io.common import AmbiguousFile as AmbiguousFile
    from exactstate.automata.io.dot_writer import to_dot as to_dot
    from exactstate.automata.io.formats import machine_text as machine_text
    from exactstate.automata.io.formats import parse_dot as parse_dot
    from exactstate.automata.io.formats import parse_json as parse_json
    from exactstate.automata.io.formats import parse_machine as parse_machine
    from exactstate.automata.io.formats import read_machine as read_machine
    from exactstate.automata.io.formats import write_machine as write_machine
    from exactstate.automata.io.json_format import to_json as to_json

__all__ = lazy(__name__, {
    "common": ["AmbiguousFile"],
    "dot_writer": ["to_dot"],
    "formats": ["machine_text", "parse_dot", "parse_json", "parse_machine", "read_machine", "write_machine"],
    "json_format": ["to_json"],
})  # fmt: skip
