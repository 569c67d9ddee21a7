"""A call is acted on and answered the same, whichever way it came."""

from collections.abc import Callable

import pytest

from edge.errors import Refused
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import METHOD_TYPE, REFUSED_TYPE
from edge.model.isa95 import MethodAnswer, ResponseAnswer, ResponsesAnswer, ReturnStatus
from edge.northbound.calls import Calls, Incoming
from edge.station.jobs import JobService
from edge.station.responses import Responses
from edge.store import jobs
from edge.store.client import Store
from tests.northbound.calling import SCOPE, opened_station, order

STORE = METHOD_TYPE.format("Store")


@pytest.fixture
async def calls(store: Store) -> Calls:
    station = await opened_station(store)
    job_service = JobService(store, station.runs, max_job_orders=1000, dedupe_ms=60_000)
    return Calls("urn:edge", (SCOPE,), job_service, Responses(store), station.settings)


def incoming(read: Callable[[], CloudEvent], scope: str = SCOPE) -> Incoming:
    return Incoming(read, {"id": "told", "type": "told.v1", "correlationid": "c"}, scope, "test")


def unreadable() -> CloudEvent:
    raise Refused("unreadable", "no event.", "Send one.")


async def test_the_answer_names_its_call_and_the_effect_is_in_the_store(calls: Calls, store: Store) -> None:
    event = CloudEvent(id="1", source="/a", type=STORE, correlationid="flow", data=order("J1"))
    answer = await calls.answer(incoming(lambda: event))
    assert (answer.source, answer.type, answer.causationid, answer.correlationid) == ("urn:edge", STORE, "1", "flow")
    assert answer.data == MethodAnswer(return_status=ReturnStatus.NO_ERROR)
    assert await jobs.load(store, "J1")


@pytest.mark.parametrize(
    ("subject", "scope", "kind"),
    [(None, SCOPE, None), (SCOPE, "", None), (None, "", "unknown_scope"), ("elsewhere", SCOPE, "unknown_scope")],
)
async def test_the_scope_is_that_of_the_event_else_that_of_the_way(
    calls: Calls, subject: str | None, scope: str, kind: str | None
) -> None:
    event = CloudEvent(id="1", source="/a", type=STORE, subject=subject, data=order("J1"))
    assert (await calls.answer(incoming(lambda: event, scope))).mdcserrorkind == kind


async def test_what_cannot_be_read_is_answered_to_whom_it_tells(calls: Calls) -> None:
    answer = await calls.answer(incoming(unreadable))
    assert (answer.mdcserrorkind, answer.mdcserrormessage) == ("unreadable", "no event. Send one.")
    assert (answer.type, answer.causationid, answer.correlationid) == ("told.v1", "told", "c")
    nameless = await calls.answer(Incoming(unreadable, {}, SCOPE, "test"))
    assert nameless.type == REFUSED_TYPE


async def test_a_defect_is_answered_as_such(calls: Calls) -> None:
    event = CloudEvent(id="1", source="/a", type=STORE)
    for read, cause in ((lambda: event, "1"), (unreadable, "told")):
        answer = calls.answer_defect(incoming(read), ZeroDivisionError())
        assert (answer.mdcserrorkind, answer.causationid) == ("internal", cause)
        assert "ZeroDivisionError" in (answer.mdcserrormessage or "")


class TestJobResponses:
    @pytest.fixture
    async def aborted(self, calls: Calls) -> None:
        """A job that has ended before it started: it has a response."""
        for method, data in (("Store", order("J1")), ("Abort", {"JobOrderID": "J1"}), ("Store", order("J2"))):
            event = CloudEvent(id=f"{method} {data}", source="/a", type=METHOD_TYPE.format(method), data=data)
            await calls.answer(incoming(lambda event=event: event))  # type: ignore[misc]

    async def ask(self, calls: Calls, method: str, data: object) -> CloudEvent:
        event = CloudEvent(id="q", source="/a", type=METHOD_TYPE.format(method), data=data)
        return await calls.answer(incoming(lambda: event))

    @pytest.mark.usefixtures("aborted")
    async def test_a_response_is_given_by_job_order(self, calls: Calls) -> None:
        answer = await self.ask(calls, "RequestJobResponseByJobOrderID", {"JobOrderID": "J1"})
        assert isinstance(answer.data, ResponseAnswer)
        assert answer.data.return_status == ReturnStatus.NO_ERROR
        assert answer.data.job_response
        assert answer.data.job_response.job_state[0].state_text.text == "Aborted"

    @pytest.mark.usefixtures("aborted")
    @pytest.mark.parametrize(
        ("job_order_id", "status"),
        [("J2", ReturnStatus.INVALID_JOB_ORDER_STATUS), ("J3", ReturnStatus.UNKNOWN_JOB_ORDER_ID)],
    )
    async def test_why_there_is_no_response_is_said(self, calls: Calls, job_order_id: str, status: int) -> None:
        answer = await self.ask(calls, "RequestJobResponseByJobOrderID", {"JobOrderID": job_order_id})
        assert answer.data == ResponseAnswer(return_status=status)
        assert answer.mdcserrormessage

    @pytest.mark.usefixtures("aborted")
    @pytest.mark.parametrize(("number", "found"), [(6, ["J1"]), (5, [])])
    async def test_responses_are_given_by_state(self, calls: Calls, number: int, found: list[str]) -> None:
        state = {"StateText": {"Text": "whatever"}, "StateNumber": number}
        answer = await self.ask(calls, "RequestJobResponseByJobOrderState", {"JobOrderState": [state]})
        assert isinstance(answer.data, ResponsesAnswer)
        assert answer.data.return_status == ReturnStatus.NO_ERROR
        assert [each.job_order_id for each in answer.data.job_responses] == found

    async def test_a_question_of_another_form_is_refused(self, calls: Calls) -> None:
        answer = await self.ask(calls, "RequestJobResponseByJobOrderState", {"JobOrderState": "Ended"})
        assert answer.mdcserrorkind == "invalid_payload"
