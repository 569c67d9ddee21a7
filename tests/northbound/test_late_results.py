"""The event of a late result."""

from edge.model.late_result import LateResultEvent
from edge.northbound.late_results import late_result_event
from edge.store.dead_letters import Letter, LetterKind


def _letter(data: str) -> Letter:
    details = {"command_id": "J1/R/a/1", "source": "/wrench", "data": data}
    return Letter(LetterKind.LATE, "station-1", "J1", "the job is gone", 1, details)


def test_event_names_command_and_result() -> None:
    event = late_result_event("urn:edge", "5-0", _letter('{"torque":85}'))
    assert (event.id, event.causationid) == ("station-1/late/5-0", "J1/R/a/1")
    assert event.data == LateResultEvent(
        job_order_id="J1", command_id="J1/R/a/1", source="/wrench", reason="the job is gone", data={"torque": 85}
    )


def test_truncated_result_is_published_as_text() -> None:
    event = late_result_event("urn:edge", "5-0", _letter('{"torque":8'))
    assert isinstance(event.data, LateResultEvent)
    assert event.data.data == '{"torque":8'
