"""Write a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from detent.errors import BrokenFile


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Put the content beside the file under another name, and then in its place in one step.

    A link is followed, so that the file it points to is replaced and not the link.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}")
    try:
        # os.open rather than tempfile: the file gets the permissions that any new file gets
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except OSError as error:
        where = f"there is no folder {target.parent}" if not target.parent.is_dir() else (error.strerror or str(error))
        raise BrokenFile(path, f"it cannot be written: {where}.") from None
    finally:
        with suppress(OSError):
            beside.unlink()
