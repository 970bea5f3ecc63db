"""Sentences about a certificate, with numbers computed here from its entries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exactstate.report.sentences import claim, enumeration, failure, head_sizes, sentences, smallest_margin

RESULTS = Path(__file__).parents[2] / "results" / "certificates"


def content_of(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


@pytest.mark.parametrize("name", ["S3-42", "TSO3-42"])
def test_smallest_margin_is_that_of_a_loop(name: str) -> None:
    content = content_of(name)
    smallest = None
    for heads in content["margins"]["logits"]:
        for rows in heads:
            for row in rows:
                for margin in row:
                    if margin is not None and (smallest is None or margin < smallest):
                        smallest = margin
    found = smallest_margin(content)
    assert found is not None
    assert found.margin == smallest
    symbol = content["symbols"].index(found.symbol)
    assert content["margins"]["logits"][found.layer][found.head][symbol][found.column] == smallest


def test_claim_names_the_grammar_and_the_layer_of_a_stack() -> None:
    assert claim(content_of("S3-42")).startswith("correct on every word of every length; smallest margin ")
    story = claim(content_of("TSO3-42"))
    assert story.startswith("correct on every word of the grammar of every length; smallest margin ")
    assert "(layer " in story


def test_claim_without_a_proved_format() -> None:
    assert claim({**content_of("S3-42"), "proved": []}).endswith("; no rounding error is bounded.")


def test_sentences_give_counts_and_the_formats_that_are_not_proved() -> None:
    content = content_of("S3-42")
    counts = content["counts"]
    told = sentences(content)
    assert f"have {counts['joint_indices']} joint indices. {counts['reached']} configurations" in told[0]
    assert [name for name in content["proved"] if any(line.startswith(f"In {name} ") for line in told)] == content[
        "proved"
    ]
    left = {**content, "proved": content["proved"][:1]}
    others = [name for name in content["rounding"] if name not in left["proved"]]
    assert sentences(left)[-1].startswith(f"For {enumeration(others)} the bound on the rounding error exceeds")


def test_head_sizes_and_enumeration() -> None:
    assert head_sizes({"layers": [{"heads": [4, 4, 4]}, {"heads": [4, 3]}]}) == "4, 4 and 4 below 4 and 3"
    assert [enumeration("a"), enumeration("ab"), enumeration("abc")] == ["a", "a and b", "a, b and c"]


def test_failure_without_a_target() -> None:
    assert failure(None) == "There is no certificate, and no target to compare the machine with."
