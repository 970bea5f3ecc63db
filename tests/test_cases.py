"""What makes fewer test cases leaves nothing out."""

from __future__ import annotations

import inspect
from itertools import combinations, product

import pytest

from tests.cases import in_one_case, pairs


@pytest.mark.parametrize(
    "axes", [("ab", "cd"), ("abc", "de", "fghi"), (range(9), range(4), range(4), range(2)), ("a",) * 3]
)
def test_pairs_has_every_pair(axes: tuple[str, ...]) -> None:
    rows = pairs(*axes)
    for (i, one), (j, other) in combinations(enumerate(axes), 2):
        assert {(row[i], row[j]) for row in rows} == set(product(one, other))
    assert all(value in axis for row in rows for value, axis in zip(row, axes, strict=True))
    sizes = sorted(map(len, axes))
    assert len(rows) <= 2 * sizes[-1] * sizes[-2]


def test_in_one_case_goes_through_all_values_and_names_the_wrong_one() -> None:
    seen = []

    @in_one_case("seed", range(5))
    def test(kind: str, seed: int) -> None:
        seen.append((kind, seed))
        assert seed != 3

    assert list(inspect.signature(test).parameters) == ["kind"]
    with pytest.raises(AssertionError) as error:
        test(kind="a")
    assert seen == [("a", seed) for seed in range(4)]
    assert error.value.__notes__ == ["seed = 3"]
