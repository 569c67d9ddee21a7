"""GS1 element strings are parsed as the GS1 General Specifications state; all else is refused with the reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.equipment.gs1 import NotGs1Error, application_identifiers, parse_element_strings

GS = "\x1d"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # GS1 DataMatrix Guideline, and the tests of the GS1 Barcode Syntax Engine.
        (
            f"]d20109501101530003{GS}1726123110AB-123",
            {"01": "09501101530003", "17": "261231", "10": "AB-123"},
        ),
        ("]C101123456789012311012345", {"01": "12345678901231", "10": "12345"}),
        (f"{GS}0112345678901231{GS}991234", {"01": "12345678901231", "99": "1234"}),
        (f"{GS}0112345678901231235XYZ{GS}10BATCH", {"01": "12345678901231", "235": "XYZ", "10": "BATCH"}),
        (f"242123456{GS}10ABC123{GS}", {"242": "123456", "10": "ABC123"}),
        ("31001234561012345", {"3100": "123456", "10": "12345"}),
        (f"800112341234512398{GS}0112345678901231", {"8001": "12341234512398", "01": "12345678901231"}),
        ("7007211225211231", {"7007": "211225211231"}),
        ("800302112345678900ABC", {"8003": "02112345678900ABC"}),
        ("423528528528", {"423": "528528528"}),
        ("00123456789012345675", {"00": "123456789012345675"}),
    ],
)
def test_gs1_code_is_parsed_into_its_application_identifiers(code: str, expected: dict[str, str]) -> None:
    assert parse_element_strings(code) == expected
    assert list(parse_element_strings(code)) == list(expected)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("", "empty"),
        (GS, "empty"),
        ("VIN-7", "no Application Identifier at 'VIN-'"),
        ("891234", "no Application Identifier"),
        ("0112345678901234", "check digit"),
        ("00123456789012345670", "check digit"),
        ("800302112345678901ABC", "check digit"),
        ("01A2345678901231", "form"),
        (f"011234567890123{GS}", "form"),
        (f"01123456789012315{GS}991234", "no Application Identifier"),
        ("99~ABC", "form"),
        ("2421234567", "form"),
        ("8111123", "form"),
        ("70072112252", "form"),
        ("4235285", "form"),
        ("235ABCDEFGHIJKLMNOPQRSTUVWXYZ123", "form"),
        (f"10A{GS}10B", "comes twice"),
    ],
)
def test_code_that_is_not_gs1_is_refused_with_the_reason(code: str, reason: str) -> None:
    with pytest.raises(NotGs1Error, match=reason):
        parse_element_strings(code)


@given(st.lists(st.sampled_from(("10", "21", "240", "91", "8004")), unique=True, min_size=1), st.data())
def test_values_of_variable_length_end_at_their_separator(numbers: list[str], data: st.DataObject) -> None:
    values = {text: data.draw(st.text("ABCXYZabc0189%&'-_/", min_size=1, max_size=20), text) for text in numbers}
    assert parse_element_strings(GS.join(number + value for number, value in values.items())) == values


@given(st.text(st.sampled_from("0123456789AB%~\x1d"), max_size=30))
def test_any_text_is_parsed_or_refused(code: str) -> None:
    try:
        values = parse_element_strings(code)
    except NotGs1Error:
        return
    assert values
    assert "".join(number + value for number, value in values.items()) in code.replace(GS, "")


def test_identifiers_begin_differently() -> None:
    numbers = application_identifiers()
    assert len(numbers) > 500
    assert not [one for one in numbers for length in (2, 3) if len(one) > length and one[:length] in numbers]
