"""Error classes name the required reaction of the caller and carry advice."""

import pytest

from edge.foundation.errors import Defect, EdgeError, Refused, SettingsError, Unavailable


@pytest.mark.parametrize("kind", [Unavailable, Defect])
def test_error_has_message_and_advice(kind: type[EdgeError]) -> None:
    error = kind("the store is gone", "Start it.")
    assert (str(error), error.message, error.advice) == ("the store is gone", "the store is gone", "Start it.")


@pytest.mark.parametrize(
    ("message", "advice", "sentences"),
    [
        ("the store is gone", "Start it.", "the store is gone. Start it."),
        ("it is gone.", "Start it", "it is gone. Start it."),
        ("it is gone", "", "it is gone."),
    ],
    ids=["with advice", "with other full stops", "without advice"],
)
def test_message_and_advice_are_sentences(message: str, advice: str, sentences: str) -> None:
    assert Refused("unreadable", message, advice).sentences == sentences


def test_refusal_has_kind_message_and_advice() -> None:
    refusal = Refused("unreadable", "no JSON", "Send JSON.")
    assert (refusal.kind, refusal.message, refusal.advice) == ("unreadable", "no JSON", "Send JSON.")


def test_faults_of_the_settings_are_reported_together() -> None:
    error = SettingsError(["redis.url: no URL", "mqtt.url: no URL"], "Correct them.")
    assert error.problems == ("redis.url: no URL", "mqtt.url: no URL")
    assert str(error) == "redis.url: no URL\nmqtt.url: no URL"


def test_all_expected_errors_are_subclasses_of_edge_error() -> None:
    assert all(issubclass(kind, EdgeError) for kind in (Unavailable, Refused, SettingsError, Defect))
