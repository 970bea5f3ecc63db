"""Counting modulo n with a diagonal recurrence, in floats, in unsigned integers, and by a table.

Nowak, Cotterell and Boumasmoud (https://arxiv.org/abs/2606.01765): a diagonal state-space model whose recurrence is
computed in floats cannot count an even modulus; with unsigned integers it can. What becomes of the usual counter:

- `rotation_rows`: a complex number of norm one multiplies the state; the symbol k of n turns it by 2 pi k / n. The
  first step after which the state is read wrongly: with only the two weights rounded to a format ("weights", in closed
  form), and with every product and sum rounded, step by step ("steps") or by a parallel scan ("scan").
- `cycle_rows`: the longest cycle of x -> a x + b over all real weights of an 8-bit format. Rounding is monotone, so the
  rounded step is monotone where a >= 0, and a monotone map of finitely many numbers has no cycle longer than one.
- `integer_rows` and `table_rows`: a counter that wraps at 2^bits, and a table of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log, pi
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from exactstate.automata import cyclic
from exactstate.records import Row
from paper.theory.drift import RoundedRotation, circle_point
from paper.theory.shapes import Floats

MODULI = tuple(range(2, 17))
FORMATS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp64": torch.float64}
COARSE = ("bf16", "fp16")
"""Formats that fail within a number of steps that can be computed."""
LIMIT = 1 << 16
"""Steps that are computed one by one."""
RANDOM_WORDS, RANDOM_LIMIT = 8, 1 << 14
BYTE_FORMATS = {"fp8 e4m3": torch.float8_e4m3fn, "fp8 e5m2": torch.float8_e5m2}


def rotation_rows(moduli: Sequence[int] = MODULI, limit: int = LIMIT) -> list[Row]:
    """One row for every modulus, format, word and place of rounding.

    `word`: "1 1 1", or "random" for the median of some words of uniform symbols. `first_wrong` is None where no step
    is wrong, which `by` explains: weights are exact, the states are in a cycle that is read rightly, or so many steps
    were computed.
    """
    rows: list[Row] = []

    def add(word: str, rounded: str, format: str, found: Sequence[tuple[int | None, str]]) -> None:
        for n, (first, by) in zip(moduli, found, strict=True):
            rows.append({
                "kind": "rotation", "word": word, "rounded": rounded, "format": format, "modulus": n,
                "first_wrong": first, "by": by,
            })  # fmt: skip

    for format in FORMATS:
        add("1 1 1", "weights", format, [_closed_form(n, format) for n in moduli])
    for format in COARSE:
        add("1 1 1", "steps", format, step_by_step(moduli, format, limit))
        ones = np.ones((limit, 1), np.int64)
        add("1 1 1", "scan", format, [_middle(by_scan(ones, n, format), limit) for n in moduli])
        found = []
        for n in moduli:
            letters = np.random.default_rng(n).integers(0, n, (min(limit, RANDOM_LIMIT), RANDOM_WORDS))
            found.append(_middle(by_scan(letters, n, format), len(letters)))
        add("random", "scan", format, found)
    return rows


def turns(n: int, format: str) -> torch.Tensor:
    """n 2: cosine and sine of 2 pi k / n, rounded to a format."""
    exact = [[float(part) for part in circle_point(k, n)] for k in range(n)]
    return torch.tensor(exact, dtype=torch.float64).to(FORMATS[format])


def _closed_form(n: int, format: str) -> tuple[int | None, str]:
    """The first wrong step with rounded weights in exact arithmetic: the angle is off by half a corner, or the norm
    has left the range of the format."""
    if n in (2, 4):
        return None, "weights are exact"
    turn, numbers = RoundedRotation.to(format, n), torch.finfo(FORMATS[format])
    ends = []
    if turn.angle_error != 0:
        ends.append((turn.first_wrong_step, "angle"))
    if turn.log_radius != 0:
        room = log(numbers.max) if turn.log_radius > 0 else -log(numbers.smallest_normal)
        ends.append((ceil(room / abs(turn.log_radius)), "overflow" if turn.log_radius > 0 else "underflow"))
    return min(ends)


def step_by_step(moduli: Sequence[int], format: str, limit: int) -> list[tuple[int | None, str]]:
    """For every modulus, the first wrong step of the word 1 1 1 when every operation is rounded."""
    cosine, sine = torch.stack([turns(n, format)[1] for n in moduli]).unbind(1)
    x, y = torch.ones_like(cosine), torch.zeros_like(cosine)
    path = []
    for _ in range(limit):
        x, y = cosine * x - sine * y, sine * x + cosine * y
        path.append(torch.stack([x, y]))
    states = torch.stack(path).double().numpy()
    return [_of_path(states[:, :, k], n) for k, n in enumerate(moduli)]


def _of_path(path: Floats, n: int) -> tuple[int | None, str]:
    wrong = misread(path, 1 + np.arange(len(path)), n)
    if wrong.any():
        return int(wrong.argmax()) + 1, "read wrongly"
    seen: dict[bytes, int] = {}
    for step in range(n - 1, len(path), n):  # a cycle that is read rightly takes a multiple of n steps
        if (key := path[step].tobytes()) in seen:
            return None, f"cycle of {step - seen[key]}"
        seen[key] = step
    return None, f"right for {len(path)} steps"


def by_scan(letters: NDArray[np.int64], n: int, format: str) -> NDArray[np.int64]:
    """For every word (L B letters) the first wrong step, L + 1 if there is none; products are taken in a tree."""
    x, y = (part.clone() for part in turns(n, format)[torch.from_numpy(letters)].unbind(-1))
    width = 1
    while width < len(letters):
        late_x, late_y, early_x, early_y = x[width:], y[width:], x[:-width], y[:-width]
        product = late_x * early_x - late_y * early_y, late_x * early_y + late_y * early_x
        x, y = torch.cat([x[:width], product[0]]), torch.cat([y[:width], product[1]])
        width *= 2
    states = torch.stack([x, y], dim=1).double().numpy()
    wrong = misread(states, letters.cumsum(0), n)
    return np.where(wrong.any(0), wrong.argmax(0) + 1, len(letters) + 1)


def misread(states: NDArray[Any], counts: NDArray[Any], n: int) -> NDArray[np.bool_]:
    """Whether the nearest corner to states (L 2 ...) is another one than the count, or the state is zero or lost."""
    x, y = states[:, 0], states[:, 1]
    lost = ~(np.isfinite(x) & np.isfinite(y)) | ((x == 0) & (y == 0))
    corner = np.round(np.arctan2(np.nan_to_num(y), np.nan_to_num(x)) * n / (2 * pi))
    return np.asarray(lost | (np.mod(corner - counts, n) != 0))


def _middle(first: NDArray[np.int64], limit: int) -> tuple[int | None, str]:
    middle = int(np.median(first))
    return (middle, "read wrongly") if middle <= limit else (None, f"right for {limit} steps")


def cycle_rows() -> list[Row]:
    """The longest cycle of x -> a x + b in each 8-bit format, for weights a >= 0 and a < 0, over all a and b."""
    rows: list[Row] = []
    for format, dtype in BYTE_FORMATS.items():
        values = torch.arange(256, dtype=torch.uint8).view(dtype).float()
        values = values[values.isfinite()].unique()  # in order; both zeros are one
        for name, weights in (("a >= 0", values[values >= 0]), ("a < 0", values[values < 0])):
            longest = max(longest_cycle(float_steps(weight, values, dtype)) for weight in weights)
            rows.append({"kind": "cycle", "format": format, "weights": name, "longest_cycle": longest})
    byte = torch.arange(256)
    for name, odd in (("even a", 0), ("odd a", 1)):
        steps = torch.stack([(a * byte + b) % 256 for a in range(odd, 256, 2) for b in range(256)])
        rows.append({"kind": "cycle", "format": "uint8", "weights": name, "longest_cycle": longest_cycle(steps)})
    return rows


def float_steps(weight: torch.Tensor, values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """b x: where x -> weight x + b sends every number of a format, as indices; rounded twice, and saturated."""
    most = values[-1]

    def rounded(exact: torch.Tensor) -> torch.Tensor:
        return exact.clamp(-most, most).to(dtype).float()

    return torch.searchsorted(values, rounded(rounded(weight * values) + values[:, None]))


def longest_cycle(steps: torch.Tensor) -> int:
    """The longest cycle of any of these maps (M n) of n numbers."""
    reach = steps
    for _ in range(ceil(log(steps.shape[1], 2))):
        reach = reach.gather(1, reach)  # after n steps everything is on a cycle
    longest, now = 1, steps.gather(1, reach)
    open_ = now != reach
    while open_.any():
        longest += 1
        now = steps.gather(1, now)
        open_ &= now != reach
    return longest


def integer_rows(moduli: Sequence[int] = MODULI, bits: int = 8) -> list[Row]:
    """The first step after which a counter that wraps at 2^bits gives the wrong remainder, found by counting."""
    count = np.arange(1, 2 * (1 << bits) + 1)
    rows: list[Row] = []
    for n in moduli:
        wrong = (count % (1 << bits)) % n != count % n
        first = int(count[wrong.argmax()]) if wrong.any() else None
        rows.append({"kind": "integer", "format": f"uint{bits}", "modulus": n, "first_wrong": first})
    return rows


def table_rows(moduli: Sequence[int] = MODULI, steps: int = LIMIT) -> list[Row]:
    """The same for a head of n indices whose tables add modulo n."""
    rows: list[Row] = []
    for n in moduli:
        wrong = cyclic(n).trajectory(np.ones(steps, np.int64)) != np.arange(1, steps + 1) % n
        first = int(wrong.argmax()) + 1 if wrong.any() else None
        rows.append({"kind": "table", "format": "table", "modulus": n, "first_wrong": first, "steps": steps})
    return rows


KINDS = {"rotation": rotation_rows, "cycle": cycle_rows, "integer": integer_rows, "table": table_rows}
"""What makes the rows of every kind."""
