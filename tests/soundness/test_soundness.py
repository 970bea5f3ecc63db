"""A short form of the campaign, and of its mutants."""

from __future__ import annotations

import pytest

from tests.soundness.campaign import MUTANTS, NEEDED, campaign, mutated


def test_no_claim_about_random_models_is_false() -> None:
    found = campaign(iter(range(6)))
    assert not found.false
    assert found.read == 6
    assert found.proved["float32"] >= 6


@pytest.mark.slow
def test_no_claim_about_many_random_models_is_false() -> None:
    found = campaign(iter(range(100, 400)))
    assert not found.false


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MUTANTS))
def test_the_campaign_finds_mistakes_in_rules(name: str) -> None:
    with mutated(name):
        assert any(campaign(iter([seed]), blocks=NEEDED.get(name, ())).false for seed in range(200))
