"""Messages of alarms: placeholders are replaced, and unknown placeholders are faults."""

import pytest

from edge.features.telemetry.rules.alarm_message import MAX_VALUE_LENGTH, faults_of_message, render_message


def test_placeholders_are_replaced_in_every_language() -> None:
    message = {"en": "{subject} has {value} °C", "de": "{subject}: {value} °C, Auftrag {job}"}
    facts = {"subject": "wrench.temp", "value": 81.50000001, "job": None}
    assert render_message(message, facts) == {
        "en": "wrench.temp has 81.5 °C",
        "de": "wrench.temp: 81.5 °C, Auftrag –",
    }


def test_a_plain_text_is_english() -> None:
    assert render_message("hot", {}) == {"en": "hot"}


def test_members_of_the_data_of_an_occurrence_are_shown() -> None:
    facts = {"data": {"step": "A", "seconds": 12.0}}
    assert render_message("{data.step}: {data.seconds} s {data.none}", facts) == {"en": "A: 12 s –"}
    assert render_message("{data.step}", {"data": "text"}) == {"en": "–"}


def test_huge_value_is_truncated() -> None:
    assert len(render_message("{value}", {"value": "x" * 10_000})["en"]) == MAX_VALUE_LENGTH + 1


def test_placeholders_in_a_value_are_not_replaced() -> None:
    assert render_message("{value}", {"value": "{subject}", "subject": "s"}) == {"en": "{subject}"}


@pytest.mark.parametrize(
    "message", ["{value.__class__}", "{nonsense}", "{data.}", "{data.a.b}", {}, {"en": ""}, {"de": "{}"}]
)
def test_faults_of_a_message_are_found(message: str | dict[str, str]) -> None:
    assert list(faults_of_message(message))


def test_valid_message_has_no_faults() -> None:
    assert list(faults_of_message({"en": "{rule} {subject} {severity} {value} {job} {at} {data.step}"})) == []
