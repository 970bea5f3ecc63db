"""The paper's figures, each a file with a function `paint` from rows to a matplotlib Figure."""
