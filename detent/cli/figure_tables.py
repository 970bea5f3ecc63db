"""Where `detent figure tables` finds tables: in a certificate, in a machine file with heads, or in a factoring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from detent.records import Row

Margins = list[float | None] | None
CERTIFIED, MACHINE = "certificate.json", "machine.json"


def table_rows(name: str) -> tuple[str, list[Row]]:
    """(title, rows as `detent.figures.tables` takes them) of a run, a certificate, a machine file or a task."""
    from detent.figures.tables import rows_of_machine
    from detent.tasks import task

    path = Path(name)
    if path.is_dir():
        path = path / (CERTIFIED if (path / CERTIFIED).exists() else MACHINE)
    if path.suffix == ".json" and path.is_file() and _is_certificate(path):
        return _certified(path)
    if path.is_file() and path.suffix in (".json", ".detent"):
        rows = _heads(path)
        if rows:
            return path.stem, rows
    found = task(str(path) if path.is_file() else name)
    return f"{found.name}, heads of its factoring", rows_of_machine(found.machine)


def _is_certificate(path: Path) -> bool:
    return '"detent-certificate"' in path.read_text(encoding="utf-8", errors="replace")[:4096]


def _certified(path: Path) -> tuple[str, list[Row]]:
    from detent.certification import Certificate

    certificate = Certificate.read(path)
    content, rows = certificate.content, []
    for layer, about in enumerate(content["layers"]):
        for head, tables in enumerate(about["tables"]):
            for window, table in zip(about["windows"], tables, strict=True):
                symbol, margins = _read_at(content, layer, head, window)
                rows.append({"layer": layer, "head": head, "symbol": symbol, "table": table, "margins": margins})
    return certificate.name, rows


def _read_at(content: dict[str, Any], layer: int, head: int, window: list[int]) -> tuple[str, Margins]:
    """(what is read at a window, the margins there, which are known by symbol and not by window)."""
    names = ["-" if at < 0 else _name(content, layer, at) for at in window]
    margins = content["margins"]["logits"][layer][head][window[-1]] if layer == 0 and len(window) == 1 else None
    return " | ".join(names), margins


def _name(content: dict[str, Any], layer: int, at: int) -> str:
    """An input of a layer: the symbol, and above the first layer the indices of the heads below."""
    below, *indices = content["layers"][layer]["inputs"][at]
    if layer == 0:
        return str(content["symbols"][below])
    return f"{_name(content, layer - 1, below)} {''.join(map(str, indices))}"


def _heads(path: Path) -> list[Row]:
    from detent.runtime import load

    machine = load(path)
    if machine.heads is None:
        return []
    return [
        {"layer": 0, "head": h, "symbol": symbol, "table": [int(k) for k in table], "margins": None}
        for h, head in enumerate(machine.heads.tables) for symbol, table in zip(machine.symbols, head, strict=True)
    ]  # fmt: skip
