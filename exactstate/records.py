"""Result rows as JSON lines, atomic writes, and strict JSON.

    append("results/sweep.jsonl", {"task": "S3", "length": 4096, "correct": 512, **stamp()})
    for row in read("results/sweep.jsonl"): ...

A row is on disk when `append` returns. A program that is killed leaves at most an incomplete last line, which `read`
skips and the next `append` removes; anything else that is not a row is refused, with its line number.
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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from exactstate.errors import BrokenFile

if sys.platform != "win32":
    import fcntl

Row = dict[str, Any]


def append(path: str | os.PathLike[str], row: Mapping[str, Any]) -> None:
    """Append one row with a single write and an fsync. Several processes may append to the same file."""
    try:
        line = json.dumps(dict(row), ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise BrokenFile(path, f"this row cannot be written as JSON ({error}): {dict(row)!r:.200}") from None
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            _lock(file)
            _mend(file)
            whole = os.fstat(file).st_size
            if os.write(file, line) < len(line):
                os.ftruncate(file, whole)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        raise BrokenFile(path, f"the row cannot be written: {(error.strerror or str(error)).lower()}.") from None


def read(path: str | os.PathLike[str]) -> Iterator[Row]:
    """The rows of the file, in order, without an incomplete last line."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            row = _row(line)
            if row is not None:
                yield row
            elif line.endswith(b"\n") and line.strip():
                raise BrokenFile(path, f"a JSON object was wanted; got {_excerpt(line)}.", number)


def mend(path: str | os.PathLike[str]) -> None:
    """Remove an incomplete last line, as a killed program or a full disk leaves one."""
    file = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        _lock(file)
        _mend(file)
    finally:
        os.close(file)


def write_atomically(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Replace the file atomically: a reader sees the old content or the new one; an error leaves no file behind.

    A symbolic link is followed: the file that it points to is replaced. A device or a pipe is written to directly.
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
    with contextlib.suppress(OSError):  # the directory entry needs an fsync of its own, where the system offers it
        folder = os.open(target.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def _write_into(path: str | os.PathLike[str], content: bytes) -> None:
    """Write to a device or a pipe."""
    try:
        with open(path, "wb") as stream:
            stream.write(content)
    except OSError as error:
        raise BrokenFile(path, f"it cannot be written: {error.strerror or error}.") from None


class InvalidJson(ValueError):
    """Text that is not strict JSON; `line` and `key` say where, as far as that is known."""

    def __init__(self, reason: str, *, line: int | None = None, key: str | None = None) -> None:
        self.reason, self.line, self.key = reason, line, key
        super().__init__(reason)


def parse_strict_json(text: str) -> Any:
    """The JSON value; InvalidJson for what parsers read differently: repeated keys, NaN, infinities."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InvalidJson(f"{error.msg.lower()} at column {error.colno}", line=error.lineno) from None
    except RecursionError:
        raise InvalidJson("it is nested too deep") from None
    except InvalidJson:
        raise
    except ValueError:
        raise InvalidJson("a number has too many digits") from None


def _unique(pairs: list[tuple[str, Any]]) -> Row:
    entries: Row = {}
    for key, value in pairs:
        if key in entries:
            raise InvalidJson(f"the key {key!r} came twice", key=key)
        entries[key] = value
    return entries


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is not a number")


def stamp() -> Row:
    """Where, when and how a result was made: machine, versions, date (UTC) and command line."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": _command(),
        "machine": {"cpu": _cpu(), "cores": _cores(), "system": f"{platform.system()} {platform.machine()}"},
        "versions": {"python": platform.python_version()} | versions("exactstate", "torch", "numpy"),
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
    """Complete a last row that lacks only its newline; remove an incomplete one."""
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


def versions(*packages: str) -> dict[str, str]:
    """Versions of those packages that are installed, without importing them."""
    from importlib import metadata  # 80 ms that only those who write results wait for

    versions = {}
    for package in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions
