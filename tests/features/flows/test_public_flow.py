"""Words of programs are said as the pages say them."""

import pytest

from edge.features.flows.cycle import INTERRUPTED, TIMEOUT, SkipReason
from edge.features.flows.public_flow import word_of


@pytest.mark.parametrize("word", [TIMEOUT, INTERRUPTED, *SkipReason])
@pytest.mark.parametrize("language", ["de", "fr"])
def test_word_of_a_reason_is_translated(word: str, language: str) -> None:
    assert word_of(word, language) not in {word, word_of(word, "en")}


def test_other_text_stands_as_it_is() -> None:
    assert [word_of(text, "de") for text in ("", "wrong tag", "not_ok")] == ["", "wrong tag", "not_ok"]
