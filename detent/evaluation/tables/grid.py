"""A table of words: for a terminal, for Markdown, for a browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A title, a head, rows, and notes below."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """Columns with two blanks between them."""
        lines = [self.head, *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.head))]
        rule = tuple("-" * width for width in widths)
        laid = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in (self.head, rule, *self.rows)]
        return "\n".join([self.title, "", *laid, "", *self.notes])

    def markdown(self) -> str:
        def line(cells: tuple[str, ...]) -> str:
            return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

        rule = "|".join([" --- "] * len(self.head))
        body = [line(self.head), f"|{rule}|", *map(line, self.rows)]
        return "\n".join([f"**{self.title}**", "", *body, "", *(f"{note}  " for note in self.notes)])

    def html(self) -> str:
        """A table element with its caption, and the notes as a paragraph."""

        def line(cells: tuple[str, ...], kind: str) -> str:
            return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"

        return "\n".join(
            [
                "<table>",
                f"<caption>{escape(self.title)}</caption>",
                f"<thead>{line(self.head, 'th')}</thead>",
                "<tbody>",
                *(line(row, "td") for row in self.rows),
                "</tbody>",
                "</table>",
                f"<p>{'<br>'.join(map(escape, self.notes))}</p>",
            ]
        )
