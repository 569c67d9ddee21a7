"""Lowers the number of jobs from which on a term is common."""

import pytest

from edge.features.archive import search


def treat_as_few(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Treat terms of more jobs than that as common."""
    monkeypatch.setattr(search, "_MOST_OF_A_RARE_TERM", few)
