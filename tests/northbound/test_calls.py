"""A call has the same effect and answer over every transport."""

import asyncio
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import CONFIG_TYPE, METHOD_TYPE, REFUSED_TYPE
from edge.model.isa95 import JobResponse, MethodAnswer, RefusalAnswer, ResponseAnswer, ResponsesAnswer, ReturnStatus
from edge.northbound.calls import CallHandler, CallServices, IncomingCall, responses_in
from edge.station.jobs import JobService
from edge.store import dead_letters, jobs, resources
from edge.store.client import Store
from tests.northbound.calling import SCOPE, opened_station, order

STORE = METHOD_TYPE.format("Store")


@pytest.fixture
async def calls(store: Store) -> CallHandler:
    station = await opened_station(store)
    job_service = JobService(store, station.runs, max_job_orders=1000, dedupe_ms=60_000)
    return CallHandler("urn:edge", (SCOPE,), store, CallServices(job_service, station.settings), now_ms)


UNREADABLE = Refused("unreadable", "no event.", "Send one.")


def incoming(event: CloudEvent | Refused, scope: str = SCOPE) -> IncomingCall:
    return IncomingCall(event, {"id": "told", "type": "told.v1", "correlationid": "c"}, scope, "test")


async def test_answer_references_its_call_and_the_effect_is_stored(calls: CallHandler, store: Store) -> None:
    event = CloudEvent(id="1", source="/a", type=STORE, correlationid="flow", data=order("J1"))
    answer = await calls.answer(incoming(event))
    assert (answer.source, answer.type, answer.causationid, answer.correlationid) == ("urn:edge", STORE, "1", "flow")
    assert answer.data == MethodAnswer(return_status=ReturnStatus.NO_ERROR)
    assert await jobs.load(store, "J1")


@pytest.mark.parametrize(
    ("subject", "scope", "kind"),
    [(None, SCOPE, None), (SCOPE, "", None), (None, "", "unknown_scope"), ("elsewhere", SCOPE, "unknown_scope")],
)
async def test_scope_is_taken_from_the_event_or_else_from_the_transport(
    calls: CallHandler, subject: str | None, scope: str, kind: str | None
) -> None:
    event = CloudEvent(id="1", source="/a", type=STORE, subject=subject, data=order("J1"))
    assert (await calls.answer(incoming(event, scope))).mdcserrorkind == kind


async def test_an_unreadable_call_is_answered_to_its_response_topic(calls: CallHandler) -> None:
    answer = await calls.answer(incoming(UNREADABLE))
    assert (answer.mdcserrorkind, answer.mdcserrormessage) == ("unreadable", "no event. Send one.")
    assert answer.data == RefusalAnswer(error_kind="unreadable", reason="no event. Send one.")
    assert (answer.type, answer.causationid, answer.correlationid) == ("told.v1", "told", "c")
    nameless = await calls.answer(IncomingCall(UNREADABLE, {}, SCOPE, "test"))
    assert nameless.type == REFUSED_TYPE


async def test_repeated_refusals_of_one_reason_are_logged_once(calls: CallHandler) -> None:
    with capture_logs() as logs:
        for number in range(3):
            await calls.answer(incoming(UNREADABLE))
            start = METHOD_TYPE.format("Start")
            await calls.answer(
                incoming(CloudEvent(id=str(number), source="/a", type=start, data={"JobOrderID": "none"}))
            )
    refusals = [entry["event"] for entry in logs if entry["log_level"] == "warning"]
    assert refusals == ["message refused", "job method refused"]


async def test_defect_is_answered_as_internal_error(calls: CallHandler) -> None:
    event = CloudEvent(id="1", source="/a", type=STORE)
    parsed: tuple[tuple[CloudEvent | Refused, str], ...] = ((event, "1"), (UNREADABLE, "told"))
    for item, cause in parsed:
        answer = await calls.answer_defect(incoming(item), ZeroDivisionError())
        assert (answer.mdcserrorkind, answer.causationid) == ("internal", cause)
        assert "ZeroDivisionError" in (answer.mdcserrormessage or "")


class TestJobResponses:
    @pytest.fixture
    async def aborted(self, calls: CallHandler) -> None:
        """A job that has ended before it started: it has a response."""
        for method, data in (("Store", order("J1")), ("Abort", {"JobOrderID": "J1"}), ("Store", order("J2"))):
            event = CloudEvent(id=f"{method} {data}", source="/a", type=METHOD_TYPE.format(method), data=data)
            await calls.answer(incoming(event))

    async def ask(self, calls: CallHandler, method: str, data: object) -> CloudEvent:
        event = CloudEvent(id="q", source="/a", type=METHOD_TYPE.format(method), data=data)
        return await calls.answer(incoming(event))

    @pytest.mark.usefixtures("aborted")
    async def test_response_is_returned_by_job_order_id(self, calls: CallHandler) -> None:
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
    async def test_missing_response_names_the_reason(self, calls: CallHandler, job_order_id: str, status: int) -> None:
        answer = await self.ask(calls, "RequestJobResponseByJobOrderID", {"JobOrderID": job_order_id})
        assert answer.mdcserrormessage
        assert answer.data == ResponseAnswer(return_status=status, reason=answer.mdcserrormessage)
        assert answer.mdcserrormessage

    @pytest.mark.usefixtures("aborted")
    @pytest.mark.parametrize(("number", "found"), [(6, ["J1"]), (5, [])])
    async def test_responses_are_returned_by_state(self, calls: CallHandler, number: int, found: list[str]) -> None:
        state = {"StateNumber": number}
        answer = await self.ask(calls, "RequestJobResponseByJobOrderState", {"JobOrderState": [state]})
        assert isinstance(answer.data, ResponsesAnswer)
        assert answer.data.return_status == ReturnStatus.NO_ERROR
        assert [response.job_order_id for response in answer.data.job_responses] == found

    async def test_invalid_response_query_is_refused(self, calls: CallHandler) -> None:
        answer = await self.ask(calls, "RequestJobResponseByJobOrderState", {"JobOrderState": "Ended"})
        assert answer.mdcserrorkind == "invalid_payload"


def called(method: str, event_id: str, data: object, **further: Any) -> IncomingCall:
    event = CloudEvent(id=event_id, source="/mes", type=METHOD_TYPE.format(method), data=data, **further)
    return IncomingCall(event, {}, SCOPE, "test")


def status(answer: CloudEvent) -> int:
    assert isinstance(answer.data, MethodAnswer), answer.mdcserrormessage
    return answer.data.return_status


@pytest.mark.parametrize("sent_at", ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T02:00:00+01:00"])
async def test_event_expired_by_its_attributes_is_refused(calls: CallHandler, store: Store, sent_at: str) -> None:
    answer = await calls.answer(called("Store", "1", order("J1"), time=sent_at, expiryinterval=60))
    assert answer.mdcserrorkind == "expired"
    assert await jobs.load(store, "J1") is None
    assert (await dead_letters.newest_refused(store, 1))[0].kind == "expired"


@pytest.mark.parametrize(
    "lasting", [{"expiryinterval": 60}, {"time": "2026-01-01"}, {"time": "soon", "expiryinterval": 0}]
)
async def test_event_without_time_or_interval_does_not_expire(calls: CallHandler, lasting: dict[str, Any]) -> None:
    assert status(await calls.answer(called("Store", "1", order("J1"), **lasting))) == 1


async def test_the_expiry_of_the_transport_precedes_the_attributes(calls: CallHandler) -> None:
    lasting = called("Store", "1", order("J1"), time="2026-01-01T00:00:00Z", expiryinterval=1)
    assert status(await calls.answer(msgspec.structs.replace(lasting, expires_at=now_ms() + 10_000))) == 1
    over = msgspec.structs.replace(called("Store", "2", order("J2")), expires_at=now_ms() - 1)
    assert (await calls.answer(over)).mdcserrorkind == "expired"


async def test_late_repetition_of_a_call_gets_the_same_answer(calls: CallHandler) -> None:
    call = called("Store", "1", order("J1"))
    first = await calls.answer(msgspec.structs.replace(call, expires_at=now_ms() + 60_000))
    again = await calls.answer(msgspec.structs.replace(call, expires_at=now_ms() - 1))
    assert (first.data, again.data) == (MethodAnswer(return_status=1), MethodAnswer(return_status=1))


@pytest.mark.parametrize(
    ("event_type", "data"),
    [
        (CONFIG_TYPE.format("equipment"), {"ID": "E1"}),
        (METHOD_TYPE.format("RequestJobResponseByJobOrderID"), {"JobOrderID": "J1"}),
    ],
)
async def test_expired_settings_and_requests_are_refused(calls: CallHandler, event_type: str, data: object) -> None:
    event = CloudEvent(id="1", source="/mes", type=event_type, data=data)
    answer = await calls.answer(IncomingCall(event, {}, SCOPE, "test", expires_at=1))
    assert answer.mdcserrorkind == "expired"


async def test_repeated_transaction_stores_and_starts_once(calls: CallHandler, store: Store) -> None:
    first = await calls.answer(called("StoreAndStart", "1", order("J1"), extensions={"transactionid": "t"}))
    again = await calls.answer(called("StoreAndStart", "2", order("J1"), extensions={"transactionid": "t"}))
    assert (status(first), status(again)) == (1, 1)
    assert await store.execute("XLEN", store.keys.joborder_changes(SCOPE)) == 1
    other = await calls.answer(called("StoreAndStart", "3", order("J1"), extensions={"transactionid": "u"}))
    assert status(other) == ReturnStatus.INVALID_JOB_ORDER_STATUS


async def test_transaction_sent_concurrently_is_applied_once(calls: CallHandler, store: Store) -> None:
    sent = (called("StoreAndStart", f"{n}", order("J1"), extensions={"transactionid": "t"}) for n in range(20))
    answers = await asyncio.gather(*(calls.answer(incoming_call) for incoming_call in sent))
    assert {status(answer) for answer in answers} == {1}
    assert await store.execute("XLEN", store.keys.joborder_changes(SCOPE)) == 1


async def test_declined_transaction_can_be_retried(calls: CallHandler, store: Store) -> None:
    full = resources.set_max_job_orders
    await store.commit(full(store.keys, SCOPE, 0))
    declined = await calls.answer(called("StoreAndStart", "1", order("J1"), extensions={"transactionid": "t"}))
    assert status(declined) == ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER
    assert declined.data == MethodAnswer(return_status=16, reason=declined.mdcserrormessage)
    await store.commit(full(store.keys, SCOPE, None))
    again = await calls.answer(called("StoreAndStart", "2", order("J1"), extensions={"transactionid": "t"}))
    assert status(again) == 1


async def test_refused_message_is_counted_and_stored_truncated(calls: CallHandler, store: Store) -> None:
    attributes = {"id": "7", "type": "told.v1"}
    await calls.answer(IncomingCall(UNREADABLE, attributes, SCOPE, "app/jobs", raw=b"\xff" * 10_000))
    await calls.answer_defect(IncomingCall(UNREADABLE, {}, SCOPE, "rpc"), ZeroDivisionError())
    assert await dead_letters.count_refused(store) == 2
    defect, unread = await dead_letters.newest_refused(store, 10)
    assert (unread.way, unread.event_type, unread.event_id, unread.kind) == ("app/jobs", "told.v1", "7", "unreadable")
    assert str(unread.reason) == "no event. Send one."
    assert unread.payload == b"\\xff" * 1024
    assert (defect.kind, defect.payload) == ("internal", b"")


RESPONSE = JobResponse(job_response_id="R1", job_order_id="J1", job_state=())


def test_results_of_an_answer_are_found() -> None:
    status = ReturnStatus.NO_ERROR
    assert responses_in(ResponseAnswer(job_response=RESPONSE, return_status=status)) == (RESPONSE,)
    assert responses_in(ResponsesAnswer(job_responses=(RESPONSE,), return_status=status)) == (RESPONSE,)
    assert responses_in(ResponseAnswer(job_response=None, return_status=status)) == ()
    assert responses_in(MethodAnswer(return_status=status)) == ()
    assert responses_in(None) == ()
