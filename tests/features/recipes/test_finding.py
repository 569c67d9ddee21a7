"""Findings: each kind has a level."""

from edge.features.recipes.finding import LEVELS, FindingKind


def test_each_kind_has_a_level() -> None:
    assert set(LEVELS) == set(FindingKind)
