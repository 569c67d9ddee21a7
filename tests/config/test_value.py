"""A value is read according to its annotation."""

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from edge.config import value

Number = Annotated[int, Meta(ge=1, le=9)]
Texts = Annotated[tuple[str, ...], Meta(min_length=1)]
Broker = Annotated[str, Meta(extra={"schemes": ("mqtt", "mqtts")})]
Password = Annotated[str, Meta(extra={"secret": True})]


@pytest.mark.parametrize(
    ("written", "hint", "read"),
    [
        (3, Number, 3),
        (["a", "b"], Texts, ("a", "b")),
        ("mqtts://[::1]:8883", Broker, "mqtts://[::1]:8883"),
        ("", Broker, ""),
        ("b", Literal["a", "b"], "b"),
    ],
)
def test_toml_value_keeps_its_type(written: object, hint: Any, read: object) -> None:
    assert value.from_toml(written, hint) == value.Reading(read)


@pytest.mark.parametrize(
    ("text", "hint", "read"),
    [("3", Number, 3), ("a, b", Texts, ("a", "b")), ('["a, b"]', Texts, ("a, b",)), ("12", str, "12")],
)
def test_text_is_converted_to_the_expected_type(text: str, hint: Any, read: object) -> None:
    assert value.from_text(text, hint) == value.Reading(read)


@pytest.mark.parametrize("written", [0, 10, "3", 3.0, None])
def test_invalid_value_is_none_and_has_a_fault(written: object) -> None:
    reading = value.from_toml(written, Number)
    assert reading.value is None
    assert str(reading.faults[0]).startswith("expected a whole number of at least 1 and at most 9, got ")


@pytest.mark.parametrize("written", [-1, -0.5])
def test_whole_number_below_the_bound_of_a_number_is_shown(written: float) -> None:
    """A whole number is a number: `got a whole number` does not name the fault."""
    reading = value.from_toml(written, Annotated[float, Meta(ge=0)])
    assert list(map(str, reading.faults)) == [f"expected a number of at least 0, got {written}"]


@pytest.mark.parametrize("url", ["mqtt", "mqtt://", "mqtt://:1883", "mqtt://h:0", "mqtt://h:x", "mqtt://[h", "ws://h"])
def test_a_url_needs_a_known_scheme_and_a_host(url: str) -> None:
    assert len(value.from_toml(url, Broker).faults) == 1


def test_secret_is_masked_in_its_representation() -> None:
    password = value.from_toml("horse", Password).value
    assert (password, repr(password), f"{password!r}") == ("horse", "'***'", "'***'")


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (int, "a whole number"),
        (Number, "a whole number of at least 1 and at most 9"),
        (Annotated[int, Meta(le=0)], "a whole number of at most 0"),
        (Annotated[float, Meta(gt=0)], "a number above 0"),
        (Annotated[float, Meta(gt=0, le=9)], "a number above 0 and at most 9"),
        (Annotated[float, Meta(ge=0)], "a number of at least 0"),
    ],
)
def test_expected_number_names_the_bounds_that_there_are(hint: Any, expected: str) -> None:
    assert str(value.expected(hint)) == expected
