"""Machine files: DOT as LearnLib, AutomataWiki and AALpy write it, JSON, AT&T text, BA.

`read_machine(path)` and `write_machine(machine, path)` choose the format by the extension; `to_dot`, `parse_dot` and so
on convert text. Reading what was written gives an equal machine, in every format that can represent it:

    DOT   every machine; unusual names are percent-encoded
    JSON  every machine, as integer tables
    att   DFAs and Mealy machines whose names hold no blanks and whose orders are the natural ones
    BA    DFAs, likewise
"""

from typing import TYPE_CHECKING

from exactstate._lazy import lazy

if TYPE_CHECKING:
    from exactstate.automata.io.att import to_att as to_att
    from exactstate.automata.io.ba import to_ba as to_ba
    from exactstate.automata.io.common import AmbiguousFile as AmbiguousFile
    from exactstate.automata.io.dot_writer import to_dot as to_dot
    from exactstate.automata.io.formats import machine_text as machine_text
    from exactstate.automata.io.formats import parse_att as parse_att
    from exactstate.automata.io.formats import parse_ba as parse_ba
    from exactstate.automata.io.formats import parse_dot as parse_dot
    from exactstate.automata.io.formats import parse_json as parse_json
    from exactstate.automata.io.formats import parse_machine as parse_machine
    from exactstate.automata.io.formats import read_machine as read_machine
    from exactstate.automata.io.formats import write_machine as write_machine
    from exactstate.automata.io.json_format import to_json as to_json

__all__ = lazy(__name__)
