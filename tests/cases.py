"""Fewer test cases for the same checks: pairs instead of a cross product, and a range of seeds as one case."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from typing import Any


def in_one_case(name: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, as one case that goes through all values; an error says at which it was."""
    values = tuple(values)

    def decorator(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def through_all(**fixtures: Any) -> None:
            for value in values:
                try:
                    test(**fixtures, **{name: value})
                except BaseException as error:
                    error.add_note(f"{name} = {value!r}")
                    raise

        signature = inspect.signature(test)
        rest = [parameter for parameter in signature.parameters.values() if parameter.name != name]
        through_all.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return through_all

    return decorator


def pairs(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows with a value of every axis, in which every two values of any two axes meet at least once."""
    columns = list(combinations(range(len(axes)), 2))
    left = {(i, a, j, b) for i, j in columns for a, b in product(range(len(axes[i])), range(len(axes[j])))}
    rows = []
    while left:
        i, a, j, b = min(left)
        row = {i: a, j: b}
        for k in range(len(axes)):
            if k not in row:
                row[k] = max(range(len(axes[k])), key=lambda c: sum(_met(row, k, c, other) in left for other in row))
        left -= {(i, row[i], j, row[j]) for i, j in columns}
        rows.append(tuple(axis[row[k]] for k, axis in enumerate(axes)))
    return rows


def _met(row: dict[int, int], k: int, c: int, other: int) -> tuple[int, int, int, int]:
    return (k, c, other, row[other]) if k < other else (other, row[other], k, c)
