"""A prefix tree of words and their outputs: a node for every prefix, and the output after it.

    A  symbols     B  words     L  their length

Node 0 is the empty word, which has no output.
"""

from __future__ import annotations

from detent._types import MISSING, Ints
from detent.errors import InvalidInput


class PrefixTree:
    """Words with their outputs; words with a common prefix share its nodes."""

    def __init__(self, symbols: int) -> None:
        self.symbols, self.words = symbols, 0
        self.next: list[dict[int, int]] = [{}]
        """next[q][a]: the node after node q when symbol a is read."""
        self.output = [MISSING]
        """Of every node; MISSING at the root."""
        self.visits = [0]
        """How many words go through a node."""

    def __len__(self) -> int:
        return len(self.output)

    def add(self, inputs: Ints, outputs: Ints) -> None:
        """Add words, and the output at each of their symbols (B L each)."""
        following, output, visits = self.next, self.output, self.visits
        for word, word_outputs in zip(inputs.tolist(), outputs.tolist(), strict=True):
            node = 0
            visits[0] += 1
            for symbol, wanted in zip(word, word_outputs, strict=True):
                children = following[node]
                node = children.setdefault(symbol, len(output))
                if node == len(output):
                    following.append({})
                    output.append(wanted)
                    visits.append(0)
                elif output[node] != wanted:
                    raise InvalidInput(
                        f"the same word has output {output[node]} and output {wanted}; "
                        "the outputs of a machine are a function of the word."
                    )
                visits[node] += 1
        self.words += len(inputs)
