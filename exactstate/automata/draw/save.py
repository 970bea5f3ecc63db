"""Write a matplotlib figure to a file, atomically: the same bytes for the same drawing."""

from __future__ import annotations

import io
import os
import re
import warnings
from pathlib import Path
from typing import Any

from exactstate.errors import unknown
from exactstate.records import write_atomically

PICTURES = (".svg", ".png", ".pdf")
DOTS_PER_INCH = 180


def save(figure: Any, target: str | os.PathLike[str], **how: Any) -> None:
    """Write the figure in the format of the file's extension; `how` goes to matplotlib's savefig."""
    write_atomically(target, rendered(figure, picture_format(target), **how))


def rendered(figure: Any, suffix: str, **how: Any) -> bytes:
    """The figure as the content of a file with this extension."""
    from matplotlib import rc_context

    content = io.BytesIO()
    metadata: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix, {})
    with rc_context({"svg.hashsalt": "exactstate"}), warnings.catch_warnings():
        # a character that the font lacks is drawn as a box
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(
            content, **{"format": suffix[1:], "dpi": DOTS_PER_INCH, "metadata": metadata, "facecolor": "white"} | how
        )
    return _slim(content.getvalue()) if suffix == ".svg" else content.getvalue()


def _slim(svg: bytes) -> bytes:
    """Round paths to hundredths of a point and put each on one line: a fifth smaller."""

    def shorter(found: re.Match[bytes]) -> bytes:
        return re.sub(rb"\.(\d\d)\d+", rb".\1", found[0].replace(b" \n", b" ").replace(b"\n", b" "))

    return re.sub(rb' (?:d|x|y)="[^"]*"|translate\([^)]*\)', shorter, svg)


def picture_format(target: str | os.PathLike[str]) -> str:
    """The extension of the file, if it is that of a picture."""
    suffix = Path(target).suffix.lower()
    if suffix not in PICTURES:
        raise unknown("picture format", suffix, PICTURES)
    return suffix
