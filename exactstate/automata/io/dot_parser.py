"""Parse DOT into nodes and edges, as Graphviz would, without asking what they mean.

Read: bare, numeric and quoted names, missing semicolons, chains a -> b -> c, ports (which only place the arrow),
defaults (`node [...]`, `edge [...]`) from where they stand on, groups in braces, `strict`.
Refused: undirected graphs and edges that lead to or from a group.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from exactstate.automata.io.common import Reading, shown

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<name>    (?:(?<!\w)-)?(?:\d+\.\d* | \.\d+) | (?<!\w)-\d+ | \w+ )
    | (?P<mark>    [][{};,=:+] )
    | (?P<arrow>   -> | -- )
    | (?P<plain>   "[^"\\]*" )
    | (?P<quote>   " )
    | (?P<comment> //[^\n]* | /\*.*?\*/ )
    | (?P<html>    < )
    | (?P<hash>    \#[^\n]* )
    | (?P<end>     \Z )
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(\r\n|.)", re.DOTALL)
_ANGLE = re.compile(r"[<>]")


class Html(str):
    """The inside of an HTML string, so that its tags are not taken for text."""


class Token(NamedTuple):
    kind: str
    """arrow, name, mark, string or end."""
    value: str
    position: int


def tokens(reading: Reading, position: int = 0) -> Iterator[Token]:
    """The tokens of the text from a position on, ending with one of kind `end`."""
    text = reading.text
    match = _TOKEN.match
    while found := match(text, position):
        kind = found.lastgroup or ""
        start, position = found.start(kind), found.end()
        if kind == "plain":
            yield Token("string", text[start + 1 : position - 1], start)
        elif kind == "quote":
            position = _quote_end(reading, start)
            yield Token("string", _ESCAPE.sub(_meant, text[start + 1 : position - 1]), start)
        elif kind == "html":
            position = _html_end(reading, start)
            yield Token("string", Html(text[start + 1 : position - 1]), start)
        elif kind == "hash" and not _may_comment(text, start):
            raise reading.error(_complaint(text, start), reading.line(start))
        elif kind not in ("comment", "hash"):
            yield Token(kind, found.group(kind), start)
            if kind == "end":
                return
    while text[position].isspace():
        position += 1
    raise reading.error(_complaint(text, position), reading.line(position))


def _quote_end(reading: Reading, start: int) -> int:
    """Behind the quote that closes the string: the first one after an even number of backslashes."""
    text, end = reading.text, start
    while (end := text.find('"', end + 1)) >= 0:
        before = end
        while text[before - 1] == "\\":
            before -= 1
        if (end - before) % 2 == 0:
            return end + 1
    raise reading.error("the string that begins with '\"' is never closed.", reading.line(start))


def _meant(escape: re.Match[str]) -> str:
    """Only the escaped quote and the joined line belong to DOT; other escapes are left for the label."""
    after = escape.group(1)
    return after if after == '"' else "" if after.endswith("\n") else escape.group()


def _html_end(reading: Reading, start: int) -> int:
    depth = 0
    for angle in _ANGLE.finditer(reading.text, start):
        depth += 1 if angle.group() == "<" else -1
        if depth == 0:
            return angle.end()
    raise reading.error("the HTML string that begins with '<' is never closed.", reading.line(start))


def _may_comment(text: str, start: int) -> bool:
    """Whether a # opens a comment: at the beginning of a line, or after a finished statement."""
    before = text[text.rfind("\n", 0, start) + 1 : start].rstrip()
    return not before or before[-1] in ";{}]"


def _complaint(text: str, start: int) -> str:
    if text.startswith("/*", start):
        return "the comment that begins with /* is never closed."
    around = text[start : start + 20].split("\n")[0]
    return f"{shown(around)} is not DOT; names with other letters than a-z, 0-9 and _ are written in quotes."


# a short cut, not another grammar: whatever it does not match is read token by token
_PLAIN_EDGE = re.compile(
    r"""\s*(?P<source>\w+|"[^"\\]*")\s*->\s*(?P<target>\w+|"[^"\\]*")"""
    r"""\s*\[\s*label\s*=\s*(?P<label>\w+|"[^"\\]*")\s*\](?!\s*\[)\s*;?"""
)
_KEYWORDS = ("graph", "node", "edge", "subgraph", "strict", "digraph")
MAX_DEPTH = 100
"""Groups within groups that are still read."""
MEANINGFUL = frozenset({"label", "shape", "style", "color", "peripheries"})
"""Attributes of nodes and edges that a reader asks for; others are not kept."""
MAX_INHERITED = 16
"""Letters of default labels that are repeated, for every letter of the text."""


@dataclass(slots=True)
class Node:
    name: str
    line: int
    attributes: dict[str, str]


@dataclass(slots=True)
class Edge:
    source: str
    target: str
    line: int
    attributes: dict[str, str]


@dataclass
class Graph:
    attributes: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    """By name, in order of first mention."""
    declared: dict[str, Node] = field(default_factory=dict)
    """Those with a line of their own, in order of that line."""
    edges: list[Edge] = field(default_factory=list)

    def ordered(self, without: Collection[str]) -> list[Node]:
        """The nodes in order of their lines, then those that only edges mention, without some."""
        return [node for name, node in {**self.declared, **self.nodes}.items() if name not in without]


def parse_graph(reading: Reading) -> Graph:
    """The graph that the text describes."""
    parser = _Parser(reading)
    parser.header()
    parser.statements()
    return parser.graph


class _Parser:
    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.graph = Graph()
        # one pair of defaults per open brace: what `node [...]` and `edge [...]` have set so far
        self.defaults: list[tuple[dict[str, str], dict[str, str]]] = [({}, {})]
        self.repeated = 0
        """Letters of default labels that were given to nodes and edges."""
        self.tokens = tokens(reading)
        self.token = next(self.tokens)

    def header(self) -> None:
        """strict? digraph name? {"""
        strict = self.token
        if self._keyword("strict"):
            self.reading.note(
                "a strict graph has no parallel edges; those in the file were kept, each as a transition.",
                self._line(strict),
            )
        kind = self.token
        if self._keyword("graph"):
            raise self._error("a machine is a digraph; this graph has no directions.", kind)
        if not self._keyword("digraph"):
            found = "nothing" if kind.kind == "end" else shown(kind.value, 30)
            raise self._error(f"a DOT file begins with 'digraph'; this one with {found}.", kind)
        if self.token.kind in ("name", "string"):
            self._advance()
        self._expect("{")

    def statements(self) -> None:
        while True:
            token = self.token
            if token.kind == "end":
                raise self._error("the file ends before the closing '}' of the graph.", token)
            if token.kind == "mark" and token.value == "}":
                self._advance()
                if len(self.defaults) == 1:
                    break
                self.defaults.pop()
                self._refuse_group_edge()
            elif token.kind == "mark" and token.value == ";":
                self._advance()
            elif (token.kind == "mark" and token.value == "{") or self._keyword("subgraph"):
                self._open_group(token)
            elif not self._plain_edges():
                self._statement()
        if self.token.kind != "end":
            raise self._error(f"the graph is closed, but the file goes on with {shown(self.token.value, 30)}.")

    def _plain_edges(self) -> bool:
        """Read as many edges as follow in their plainest form, which most files are made of; whether there were any."""
        begin = at = self.token.position
        while found := _PLAIN_EDGE.match(self.reading.text, at):
            source, target, label = found.group("source", "target", "label")
            if source.lower() in _KEYWORDS or target.lower() in _KEYWORDS:
                break
            begins, ends = Token("name", source, found.start("source")), Token("name", target, found.start("target"))
            line = self._line(begins)
            names = self._node(source.strip('"'), begins).name, self._node(target.strip('"'), ends).name
            attributes = {**self.defaults[-1][1], "label": label.strip('"')}
            self.graph.edges.append(Edge(names[0], names[1], line, attributes))
            at = found.end()
        if at > begin:
            self.tokens = tokens(self.reading, at)
            self._advance()
        return at > begin

    def _statement(self) -> None:
        """Defaults, an attribute of the graph, a node, or a chain of edges."""
        first = self.token
        if self._keyword("graph"):
            self._attributes(self.graph.attributes if len(self.defaults) == 1 else {}, all_of_them=True)
        elif self._keyword("node"):
            self._attributes(self.defaults[-1][0])
        elif self._keyword("edge"):
            self._attributes(self.defaults[-1][1])
        else:
            name = self._name()
            if self._mark("="):
                value = self._name("a value")
                if len(self.defaults) == 1:
                    self.graph.attributes[name] = value
                return
            self._port()
            node = self._node(name, first)
            if self.token.kind == "arrow":
                self._chain(node, first)
            else:
                self.graph.declared.setdefault(name, node)
                self._attributes(node.attributes)

    def _chain(self, source: Node, first: Token) -> None:
        line, pairs = self._line(first), []
        while self.token.kind == "arrow":
            if self.token.value == "--":
                raise self._error("'--' has no direction; a machine needs '->'.")
            self._advance()
            if (self.token.kind == "mark" and self.token.value == "{") or self._is_keyword("subgraph"):
                raise self._error("an edge to a group of nodes is not a transition; write one edge per node.")
            place = self.token
            target = self._node(self._name("the state the arrow leads to"), place)
            self._port()
            pairs.append((source.name, target.name))
            source = target
        attributes = self._inherited(self.defaults[-1][1], first)
        self._attributes(attributes)
        self.graph.edges += [Edge(begin, end, line, attributes) for begin, end in pairs]

    def _open_group(self, token: Token) -> None:
        if token.value != "{" and self.token.kind in ("name", "string"):
            self._advance()
        self._expect("{")
        if len(self.defaults) == 1:
            self.reading.note("the grouping of nodes in braces was ignored.", self._line(token))
        if len(self.defaults) > MAX_DEPTH:
            raise self._error(f"groups are nested more than {MAX_DEPTH} deep; no machine file does that.", token)
        node_defaults, edge_defaults = self.defaults[-1]
        self.defaults.append((dict(node_defaults), dict(edge_defaults)))

    def _refuse_group_edge(self) -> None:
        if self.token.kind == "arrow":
            raise self._error("an edge from a group of nodes is not a transition; write one edge per node.")

    def _attributes(self, into: dict[str, str], *, all_of_them: bool = False) -> None:
        """Any number of lists [key = value, ...]; a key alone means true."""
        while self._mark("["):
            while not self._mark("]"):
                key = self._name("an attribute or ']'")
                value = self._name("a value") if self._mark("=") else "true"
                if all_of_them or key in MEANINGFUL:
                    into[key] = value
                if not self._mark(","):
                    self._mark(";")

    def _node(self, name: str, token: Token) -> Node:
        node = self.graph.nodes.get(name)
        if node is None:
            attributes = self._inherited(self.defaults[-1][0], token)
            node = self.graph.nodes[name] = Node(name, self._line(token), attributes)
        return node

    def _inherited(self, defaults: dict[str, str], token: Token) -> dict[str, str]:
        """A copy of the defaults; a long label that is repeated for very many nodes or edges is refused."""
        length = len(defaults.get("label", ""))
        self.repeated += length
        if self.repeated > MAX_INHERITED * (len(self.reading.text) + 1024):
            raise self._error(
                f"a default label of {length:,} letters is repeated too often; write labels where they belong.", token
            )
        return dict(defaults)

    def _name(self, wanted: str = "a state, an edge or '}'") -> str:
        token = self.token
        if token.kind not in ("name", "string"):
            found = "the end of the file" if token.kind == "end" else shown(token.value, 30)
            raise self._error(f"wanted {wanted}, found {found}.")
        self._advance()
        if token.kind == "name" or not self._mark("+"):
            return token.value
        parts = [token.value]
        while True:
            if self.token.kind != "string":
                raise self._error("wanted a string after '+'.")
            parts.append(self.token.value)
            self._advance()
            if not self._mark("+"):
                return "".join(parts)

    def _port(self) -> None:
        while self._mark(":"):
            self._name("a port after ':'")

    def _expect(self, mark: str) -> None:
        found = "the end of the file" if self.token.kind == "end" else shown(self.token.value, 30)
        if not self._mark(mark):
            raise self._error(f"wanted '{mark}', found {found}.")

    def _mark(self, mark: str) -> bool:
        """Step over this mark if it comes next."""
        found = self.token.kind == "mark" and self.token.value == mark
        if found:
            self._advance()
        return found

    def _is_keyword(self, word: str) -> bool:
        return self.token.kind == "name" and self.token.value.lower() == word

    def _keyword(self, word: str) -> bool:
        """Step over this keyword if it comes next."""
        found = self._is_keyword(word)
        if found:
            self._advance()
        return found

    def _advance(self) -> None:
        self.token = next(self.tokens)

    def _line(self, token: Token) -> int:
        return self.reading.line(token.position)

    def _error(self, reason: str, token: Token | None = None) -> Exception:
        return self.reading.error(reason, self._line(token or self.token))
