"""What was heard, as a tree: a node for every beginning of a word, and what was put out when it was reached.

    A  symbols     B  words     L  their length

Node 0 is the empty word, where nothing has been put out yet.
"""

from __future__ import annotations

from detent._types import MISSING, Ints
from detent.errors import InvalidInput


class PrefixTree:
    """Words and their outputs, beginnings shared."""

    def __init__(self, symbols: int) -> None:
        self.symbols, self.words = symbols, 0
        self.next: list[dict[int, int]] = [{}]
        """next[q][a]: the node after node q when symbol a is read."""
        self.output = [MISSING]
        self.visits = [0]
        """How many words go through a node."""

    def __len__(self) -> int:
        return len(self.output)

    def add(self, inputs: Ints, outputs: Ints) -> None:
        """Take in words and what was put out at each of their symbols (B L each)."""
        following, output, visits = self.next, self.output, self.visits
        for word, said in zip(inputs.tolist(), outputs.tolist(), strict=True):
            node = 0
            visits[0] += 1
            for symbol, heard in zip(word, said, strict=True):
                moves = following[node]
                node = moves.setdefault(symbol, len(output))
                if node == len(output):
                    following.append({})
                    output.append(heard)
                    visits.append(0)
                elif output[node] != heard:
                    raise InvalidInput(
                        f"the same word was answered with output {output[node]} and with output {heard}; "
                        "outputs of a machine are determined by what it has read."
                    )
                visits[node] += 1
        self.words += len(inputs)
