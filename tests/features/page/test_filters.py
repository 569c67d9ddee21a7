"""Values are formatted for people: no separator without a part, a severity as a word."""

import pytest
from markupsafe import Markup

from edge.features.page.filters import FILTERS
from edge.foundation.text import labels


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["", None, "b", None], "b"),
        (["<a>", Markup("<b>")], "&lt;a&gt; · <b>"),
    ],
)
def test_dots_stand_between_parts_only(parts: list[str | None], text: str) -> None:
    assert FILTERS["dots"](parts) == text


@pytest.mark.parametrize(
    ("severity", "english", "german"),
    [
        (1, "low", "gering"),
        (333, "low", "gering"),
        (334, "medium", "mittel"),
        (699, "medium", "mittel"),
        (700, "high", "hoch"),
    ],
)
def test_severity_is_a_word(severity: int, english: str, german: str) -> None:
    assert FILTERS["severity"](severity, labels("en").__getitem__) == english
    assert FILTERS["severity"](severity, labels("de").__getitem__) == german
