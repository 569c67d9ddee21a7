"""Keys of associations and their stored text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.sfc.association_key import AssociationKey, parse_association_key


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (AssociationKey("a", "A"), "a@A"),
        (AssociationKey("a", "A", 2), "a@A#2"),
        (AssociationKey("a", "A", attempt=3), "a@A/3"),
        (AssociationKey("a", "A", 2, 3), "a@A#2/3"),
        (AssociationKey("a/b@c", "größe #1"), "a%2Fb%40c@gr%C3%B6%C3%9Fe%20%231"),
    ],
)
def test_key_is_stored_as_escaped_text(key: AssociationKey, text: str) -> None:
    assert str(key) == f"{key}" == text
    assert parse_association_key(text) == key


@given(st.text(), st.text(), st.integers(1, 50), st.integers(0, 50))
def test_every_key_is_parsed_from_its_text(action: str, step: str, number: int, attempt: int) -> None:
    key = AssociationKey(action, step, number, attempt)
    assert parse_association_key(str(key)) == key


@pytest.mark.parametrize("text", ["", "a", "a@b@c", "a@b#x", "a@b/", "a@b/1/2", "a@b/1#2", "action:a@b/x"])
def test_invalid_key_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a key of an association"):
        parse_association_key(text)


def test_earlier_attempt_keeps_the_key_of_the_latest() -> None:
    key = AssociationKey("a", "A", 2)
    left = key.left_behind(4)
    assert (left.is_left_behind, key.is_left_behind) == (True, False)
    assert left.latest == key.latest == key
    assert left > key
