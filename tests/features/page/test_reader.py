"""The reader page groups the operations of the OpenAPI document by subject and describes their types."""

from edge.features.page.openapi import openapi
from edge.features.page.reader import subjects_of, types_of


def test_operations_are_grouped_by_subject() -> None:
    found = subjects_of(openapi())
    assert {"jobs", "alarms", "session", "events"} <= found.keys()
    order = next(each for each in found["jobs"] if (each.method, each.path) == ("POST", "/api/v1/jobs"))
    assert (order.role, order.body and order.body.link, order.answer and order.answer.link) == (
        "engineer",
        "JobOrderBody",
        "MethodDone",
    )
    (events,) = found["events"]
    assert events.answer
    assert events.answer.text == "text/event-stream"
    assert {each.method for each in found["session"]} == {"POST", "DELETE"}


def test_types_are_described_in_words() -> None:
    found = {each.name: {one.name: one for one in each.members} for each in types_of(openapi())}
    assert found["MethodDone"]["job"].type.text in {"JobSummary or null", "null or JobSummary"}
    assert found["MethodDone"]["job"].type.link == "JobSummary"
    assert found["AlarmHistory"]["changes"].type.text == "list of AlarmChangeView"
    assert found["InterventionRequestBody"]["kind"].type.text == "complete | force | retry | skip"
    assert found["InterventionRequestBody"]["reason"].type.text == "string, 1 to 1000"
    assert not found["InterventionRequestBody"]["step"].is_required
