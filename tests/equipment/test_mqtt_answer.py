"""Conversion of the messages of MQTT equipment for the station."""

import pytest

from edge.equipment.mqtt_answer import complete_answer, declined_stop, to_answer, to_equipment_event, to_unsolicited
from edge.foundation.errors import Refused
from edge.links.mqtt import Message
from edge.model.cloudevent import CloudEvent
from edge.station.equipment import EquipmentAnswer, OutcomeUnknown


def _event(**further: str) -> CloudEvent:
    return CloudEvent(id="1", source="/wrench", type="t.v1", **further)  # type: ignore[arg-type]


def test_answer_without_a_command_is_unreadable() -> None:
    with pytest.raises(Refused, match="without causationid"):
        to_answer(_event())


def test_error_kind_unknown_leaves_the_outcome_unknown() -> None:
    assert to_answer(_event(causationid="c", mdcserrorkind="unknown")) == OutcomeUnknown("c", "unknown")
    assert to_answer(_event(causationid="c", mdcserrorkind="jammed")) == EquipmentAnswer("c", error="jammed")


def test_equipment_declines_a_stop_by_its_error_kind() -> None:
    kind = {"mdcserrorkind": "not_stopped", "mdcserrormessage": "the tool is locked"}
    assert declined_stop(_event(causationid="J/R/a/1", **kind)) == "the tool is locked"
    # A reset that is answered with any error is declined.
    assert declined_stop(_event(causationid="J/R/a/1/reset", **kind)) is None
    assert declined_stop(_event(causationid="J/R/a/1", mdcserrorkind="stopped")) is None


def test_missing_attributes_of_an_answer_are_completed() -> None:
    completed = complete_answer(Message("wrench/answers", b"{}", user_properties={"causationid": "c"}))
    assert completed.user_properties["id"] == "c"
    assert completed.content_type == "application/json"


def test_result_without_an_own_command_is_unsolicited() -> None:
    late_result = to_unsolicited(CloudEvent(id="7", source="/w", type="t", data={"torque": 1}), "station-1")
    assert late_result
    assert (late_result.source, late_result.key, late_result.scope) == ("/w", "7", "station-1")


def test_event_without_scope_is_unreadable() -> None:
    with pytest.raises(Refused, match="without subject"):
        to_equipment_event(_event())


def test_declined_repeated_id_leaves_the_outcome_unknown() -> None:
    """Both gateways receive the answer: that whose command is at work ended it as failed, too."""
    kind = {"mdcserrorkind": "repeated_id", "mdcserrormessage": "another command had this id"}
    assert to_answer(_event(causationid="c", **kind)) == OutcomeUnknown("c", "another command had this id")
