"""Result rows as JSON lines, and files that are either whole or not there.

    append("results/sweep.jsonl", {"task": "S3", "length": 4096, "correct": 512, **stamp()})
    for row in read("results/sweep.jsonl"): ...

A row is on disk when `append` returns. A program that is killed leaves at most the beginning of a last line, which
`read` passes over and the next `append` removes; anything else that is not a row is refused, with its line number.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from detent.errors import BrokenFile

if sys.platform != "win32":
    import fcntl

Row = dict[str, Any]


def append(path: str | os.PathLike[str], row: Mapping[str, Any]) -> None:
    """Add one row at the end of the file: one write, then on disk. Several programs may append to the same file."""
    try:
        line = json.dumps(dict(row), ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise BrokenFile(path, f"this row cannot be written as JSON ({error}): {dict(row)!r:.200}") from None
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        _lock(file)
        _mend(file)
        whole = os.fstat(file).st_size
        if os.write(file, line) < len(line):
            os.ftruncate(file, whole)
            raise OSError(errno.ENOSPC, "no room for another row", str(path))
        os.fsync(file)
    finally:
        os.close(file)


def read(path: str | os.PathLike[str]) -> Iterator[Row]:
    """The rows of the file, in order; without the beginning of a last one that was never finished."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            row = _row(line)
            if row is not None:
                yield row
            elif line.endswith(b"\n") and line.strip():
                raise BrokenFile(path, f"a JSON object was wanted; got {_excerpt(line)}.", number)


def write_atomically(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Write the file so that whoever opens it sees the old content or the new, never a part; leave nothing on error.

    A link is followed, so that the file it points to is replaced and not the link. A device or a pipe is written to.
    """
    content = data.encode() if isinstance(data, str) else data
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
        _write_into(path, content)
        return
    target = Path(path).resolve()
    draft = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.tmp")
    try:
        # os.open rather than tempfile: the file gets the permissions that any new file gets
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, target)
    except OSError as error:
        where = f"there is no folder {target.parent}" if not target.parent.is_dir() else (error.strerror or str(error))
        raise BrokenFile(path, f"it cannot be written: {where}.") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
    with contextlib.suppress(OSError):  # the name is on disk only when its folder is; not every system offers that
        folder = os.open(target.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def _write_into(path: str | os.PathLike[str], content: bytes) -> None:
    """Into something that is no file, and must not be replaced by one."""
    try:
        with open(path, "wb") as stream:
            stream.write(content)
    except OSError as error:
        raise BrokenFile(path, f"it cannot be written: {error.strerror or error}.") from None


def stamp() -> Row:
    """Where, when and how a result was made: machine, versions, date (UTC) and command line."""
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": _command(),
        "machine": {"cpu": _cpu(), "cores": _cores(), "system": f"{platform.system()} {platform.machine()}"},
        "versions": {"python": platform.python_version()} | _versions("detent", "torch", "numpy"),
    }


def _row(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:  # UnicodeDecodeError and JSONDecodeError are both
        return None
    return row if isinstance(row, dict) else None


def _excerpt(line: bytes) -> str:
    text = line.rstrip(b"\r\n").decode(errors="backslashreplace")
    return repr(text if len(text) <= 60 else text[:60] + "...")


def _lock(file: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX)


def _mend(file: int) -> None:
    """Finish a last row that lacks only its end of line, and remove one that was cut off."""
    size = os.fstat(file).st_size
    if size == 0 or os.pread(file, 1, size - 1) == b"\n":
        return
    tail, begin = b"", size
    while begin > 0 and b"\n" not in tail:
        step = min(begin, 1 << 16)
        begin -= step
        tail = os.pread(file, step, begin) + tail
    tail = tail.rpartition(b"\n")[2]
    if _row(tail) is not None:
        os.write(file, b"\n")
    else:
        os.ftruncate(file, size - len(tail))


def _command() -> str:
    """The command line as a person would type it: modules by name, programs without their folder."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = spec.name.removesuffix(".__main__") if spec is not None else None
    program = ["python", "-m", name] if name else [Path(sys.argv[0] or "python").name]
    return shlex.join([*program, *sys.argv[1:]])


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "unknown"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _versions(*packages: str) -> dict[str, str]:
    """Versions of the packages that are installed, asked without importing them."""
    found = {}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
