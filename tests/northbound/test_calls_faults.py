"""Faults found by tests from outside, each on a real store: repeated, late and foreign calls."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from edge.foundation.instant import now_ms
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import CONFIG_TYPE, METHOD_TYPE, RESOLVE_TYPE
from edge.model.isa95 import MethodAnswer, ResponsesAnswer, ReturnStatus
from edge.model.job_state import JobState
from edge.northbound.calls import CallHandler, CallServices, IncomingCall
from edge.station.jobs import JobService
from edge.station.start import RecipeLookup
from edge.store import jobs, resources
from edge.store.client import Store
from edge.store.version import too_new_error
from tests.northbound.calling import SCOPE, Station, opened_station, order

DAY_S = 86_400


@pytest.fixture
async def station(store: Store) -> Station:
    return await opened_station(store)


@pytest.fixture
def calls(store: Store, station: Station) -> CallHandler:
    recipes = RecipeLookup(store, station.runs.compiled)
    service = JobService(store, station.runs, max_job_orders=1000, dedupe_ms=60_000, recipes=recipes)
    return CallHandler("urn:edge", (SCOPE,), store, CallServices(service, station.settings), now_ms, max_age_s=DAY_S)


def call(event_type: str, event_id: str, data: object, **attributes: Any) -> IncomingCall:
    event = CloudEvent(id=event_id, source="/mes", type=event_type, data=data, **attributes)
    return IncomingCall(event, {}, SCOPE, "test")


def method(name: str, event_id: str, data: object, **attributes: Any) -> IncomingCall:
    return call(METHOD_TYPE.format(name), event_id, data, **attributes)


def setting(kind: str, event_id: str, data: object, what: str) -> IncomingCall:
    return call(CONFIG_TYPE.format(kind), event_id, data, extensions={"method": what})


def status(answer: CloudEvent) -> int:
    assert isinstance(answer.data, MethodAnswer), answer.mdcserrormessage
    return answer.data.return_status


def at(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


async def test_repeated_setting_event_does_not_restore_a_deleted_setting(calls: CallHandler, store: Store) -> None:
    for event_id, what in (("1", "PUT"), ("2", "DELETE"), ("1", "PUT")):
        answer = await calls.answer(setting("equipment", event_id, {"ID": "E1"}, what))
        assert answer.mdcserrorkind is None
    allowed = await resources.load_allowed(store, SCOPE)
    assert not any(allowed.resources.values())


async def test_one_setting_sent_many_times_at_once_is_applied_once(calls: CallHandler, store: Store) -> None:
    sent = (setting("workmaster", "1", {"ID": "plain"}, "PUT") for _ in range(20))
    await asyncio.gather(*(calls.answer(incoming_call) for incoming_call in sent))
    revision = int(await store.execute("HGET", store.keys.workmaster("plain"), "rev"))
    assert revision % resources.REVISION_SPAN == 1


async def test_order_sent_before_its_job_was_removed_is_refused(calls: CallHandler, store: Store) -> None:
    now = now_ms()
    assert status(await calls.answer(method("Store", "1", order("J1"), time=at(now)))) == 1
    assert status(await calls.answer(method("Cancel", "2", {"JobOrderID": "J1"}, time=at(now + 10)))) == 1
    # Its mark is gone: a broker of another gateway delivers the first call once more, under another id.
    again = await calls.answer(method("Store", "3", order("J1"), time=at(now)))
    assert status(again) == ReturnStatus.INVALID_JOB_ORDER_STATUS
    assert await jobs.load(store, "J1") is None
    assert status(await calls.answer(method("Store", "4", order("J1"), time=at(now + 20)))) == 1


async def test_a_call_for_a_job_of_a_newer_release_is_answered_with_the_reason(calls: CallHandler) -> None:
    error = too_new_error("run", 4, 3)
    answer = await calls.answer_defect(method("Start", "1", {"JobOrderID": "J"}), error)
    assert error.advice
    assert answer.mdcserrormessage == error.sentences


async def test_a_call_older_than_max_age_is_refused_by_its_own_time(calls: CallHandler, store: Store) -> None:
    old = at(now_ms() - (DAY_S + 60) * 1000)
    assert (await calls.answer(method("Store", "1", order("J1"), time=old))).mdcserrorkind == "expired"
    assert await jobs.load(store, "J1") is None
    young = at(now_ms() - (DAY_S - 60) * 1000)
    assert status(await calls.answer(method("Store", "2", order("J1"), time=young))) == 1


async def test_a_call_older_than_max_age_is_refused_by_the_broker(calls: CallHandler) -> None:
    queued = msgspec.structs.replace(method("Store", "1", order("J1")), sent_at=now_ms() - (DAY_S + 60) * 1000)
    assert (await calls.answer(queued)).mdcserrorkind == "expired"


@pytest.mark.parametrize(
    ("transport", "by"), [("app/jobs/station-1/commands", "the MES"), ("rpc", "a program over RPC")]
)
async def test_aborted_job_names_the_transport_of_its_caller(
    calls: CallHandler, store: Store, transport: str, by: str
) -> None:
    await calls.answer(method("Store", "1", order("J1")))
    abort = msgspec.structs.replace(method("Abort", "2", {"JobOrderID": "J1"}), source=transport)
    assert status(await calls.answer(abort)) == 1
    job = await jobs.load(store, "J1")
    assert job
    assert str(job.error) == f"aborted by {by}"


def retained(incoming: IncomingCall) -> IncomingCall:
    return msgspec.structs.replace(incoming, is_retained=True)


async def test_retained_call_of_unknown_age_is_refused(calls: CallHandler, store: Store) -> None:
    answer = await calls.answer(retained(method("Store", "1", order("J1"))))
    assert answer.mdcserrorkind == "retained"
    assert await jobs.load(store, "J1") is None
    lasting = method("Store", "2", order("J1"), extensions={"expirytime": at(now_ms() + 60_000)})
    assert (await calls.answer(retained(lasting))).mdcserrorkind == "retained"
    question = method("RequestJobResponseByJobOrderID", "3", {"JobOrderID": "J1"})
    assert (await calls.answer(retained(question))).mdcserrorkind == "retained"


async def test_retained_setting_of_unknown_age_is_refused(calls: CallHandler) -> None:
    answer = await calls.answer(retained(setting("equipment", "1", [{"ID": "press-7"}], "PUT")))
    assert answer.mdcserrorkind == "retained"


async def test_retained_call_with_its_time_is_taken_while_marks_recognize_it(calls: CallHandler, store: Store) -> None:
    young = method("Store", "1", order("J1"), time=at(now_ms() - 30_000))
    assert status(await calls.answer(retained(young))) == 1
    assert await jobs.load(store, "J1") is not None
    old = method("Store", "2", order("J2"), time=at(now_ms() - 90_000))
    assert (await calls.answer(retained(old))).mdcserrorkind == "expired"


async def test_retained_repetition_of_a_call_gets_the_same_answer(calls: CallHandler, store: Store) -> None:
    first = method("Store", "1", order("J1"))
    assert status(await calls.answer(first)) == 1
    assert status(await calls.answer(method("Cancel", "2", {"JobOrderID": "J1"}))) == 1
    assert status(await calls.answer(retained(first))) == 1
    assert await jobs.load(store, "J1") is None


async def test_event_past_its_expiry_time_is_refused(calls: CallHandler) -> None:
    over = method("Store", "1", order("J1"), extensions={"expirytime": "2026-01-01T00:00:00Z"})
    assert (await calls.answer(over)).mdcserrorkind == "expired"
    lasting = method("Store", "2", order("J1"), extensions={"expirytime": at(now_ms() + 60_000)})
    assert status(await calls.answer(lasting)) == 1


async def test_repeated_transaction_is_recognized_for_every_method(calls: CallHandler) -> None:
    extensions = {"transactionid": "t"}
    for event_id in ("1", "2"):
        assert status(await calls.answer(method("Store", event_id, order("J1"), extensions=extensions))) == 1
    for event_id in ("3", "4"):
        cancel = method("Cancel", event_id, {"JobOrderID": "J1"}, extensions=extensions)
        assert status(await calls.answer(cancel)) == 1


async def test_null_for_an_optional_member_counts_as_absent(calls: CallHandler, store: Store) -> None:
    data = order("J1")
    data["Comment"] = None
    data["JobOrder"] |= {"Priority": None, "Description": [{"Text": "x", "Locale": None}], "StartTime": None}
    data["JobOrder"]["JobOrderParameters"] = [{"ID": "p", "Value": {"inner": None}, "EngineeringUnits": None}]
    assert status(await calls.answer(method("Store", "1", data))) == 1
    job = await jobs.load(store, "J1")
    assert job
    assert job.order.job_order_parameters
    assert job.order.job_order_parameters[0].value == {"inner": None}


@pytest.mark.parametrize(
    ("masters", "reason"),
    [
        ([], "names no Work Master"),
        ([{"ID": "plain"}], "no SFC recipe"),
        ([{"ID": "WM-1"}] * 2, "names 2 Work Masters"),
    ],
)
async def test_order_that_cannot_run_is_refused_when_stored(
    calls: CallHandler, masters: list[Any], reason: str
) -> None:
    await calls.answer(setting("workmaster", "wm", {"ID": "plain"}, "PUT"))
    data = {"JobOrder": {"JobOrderID": "J1", "WorkMasterID": masters}}
    answer = await calls.answer(method("Store", "1", data))
    assert status(answer) == ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER
    assert reason in (answer.mdcserrormessage or "")


async def test_deletion_of_a_work_master_used_by_jobs_is_reported(calls: CallHandler) -> None:
    await calls.answer(method("Store", "1", order("J1")))
    answer = await calls.answer(setting("workmaster", "2", {"ID": "WM-1"}, "DELETE"))
    assert answer.mdcserrorkind is None
    assert "job order 'J1' names Work Master 'WM-1'" in (answer.mdcserrormessage or "")


async def test_settings_can_be_read_back(calls: CallHandler) -> None:
    await calls.answer(setting("materialclass", "1", [{"MaterialClassID": "bolt"}, {"MaterialClassID": "axle"}], "PUT"))
    await calls.answer(setting("jobacceptance", "2", {"max_downloadable_job_orders": 7}, "PUT"))
    cloud_event = await calls.answer(setting("materialclass", "3", None, "GET"))
    assert isinstance(cloud_event.data, list)
    assert [value.material_class_id for value in cloud_event.data] == ["axle", "bolt"]
    limit = await calls.answer(setting("jobacceptance", "4", None, "GET"))
    assert limit.data
    assert limit.data.max_job_orders == 7
    masters = await calls.answer(setting("workmaster", "5", [{"ID": "WM-1"}], "GET"))
    assert isinstance(masters.data, list)
    assert [value.id for value in masters.data] == ["WM-1"]


async def test_microdcs_call_types_are_answered_with_microdcs_types(calls: CallHandler) -> None:
    namespace = "org.opcfoundation.ISA95-JOBCONTROL_V2"
    answer = await calls.answer(call(f"{namespace}.StoreCall.v2", "1", order("J1")))
    assert (answer.type, status(answer)) == (f"{namespace}.StoreResponse.v2", 1)
    await calls.answer(call(f"{namespace}.AbortCall.v2", "2", {"JobOrderID": "J1"}))
    jobs_namespace = "org.opcfoundation.Machinery.Jobs"
    query = {"JobOrderState": [{"StateText": {"Text": "Aborted"}}]}
    cloud_event = await calls.answer(call(f"{jobs_namespace}.RequestJobResponseByJobOrderStateCall.v1", "3", query))
    assert cloud_event.type == f"{jobs_namespace}.RequestJobResponseByJobOrderStateResponse.v1"
    assert isinstance(cloud_event.data, ResponsesAnswer)
    assert [response.job_order_id for response in cloud_event.data.job_responses] == ["J1"]


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ([{"StateText": {"Text": "Aborted"}}], ["J1"]),
        ([{"StateNumber": 6}], ["J1"]),
        ([{"StateText": {"Text": "Ended"}, "StateNumber": 6}], []),
        ([{"StateText": {"Text": "Aborted"}}, {"StateText": {"Text": "Completed"}}], []),
        ([{"BrowsePath": None, "StateText": {"Text": "Aborted", "Locale": None}, "StateNumber": 6}], ["J1"]),
    ],
)
async def test_responses_match_by_text_and_number(calls: CallHandler, state: Any, found: list[str]) -> None:
    await calls.answer(method("Store", "1", order("J1")))
    await calls.answer(method("Abort", "2", {"JobOrderID": "J1"}))
    answer = await calls.answer(method("RequestJobResponseByJobOrderState", "3", {"JobOrderState": state}))
    assert isinstance(answer.data, ResponsesAnswer)
    assert [response.job_order_id for response in answer.data.job_responses] == found


async def test_responses_are_returned_in_bounded_pages(calls: CallHandler) -> None:
    names = [f"J{number:03}" for number in range(12)]
    for name in names:
        data = order(name)
        await calls.answer(method("Store", f"store {name}", data))
        await calls.answer(method("Abort", f"abort {name}", {"JobOrderID": name}))
    query: dict[str, Any] = {"JobOrderState": [{"StateNumber": int(JobState.ABORTED)}]}
    found: list[str] = []
    pages = 0
    while pages == 0 or "After" in query:
        pages += 1
        answer = await calls.answer(method("RequestJobResponseByJobOrderState", f"page {pages}", query))
        assert isinstance(answer.data, ResponsesAnswer)
        found += [response.job_order_id for response in answer.data.job_responses]
        query.pop("After", None)
        if answer.data.next:
            query["After"] = answer.data.next
    assert sorted(found) == names


async def test_causation_and_trace_context_reach_job_and_answer(calls: CallHandler, store: Store) -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1"}
    answer = await calls.answer(method("Store", "cause", order("J1"), extensions=trace))
    assert (answer.causationid, dict(answer.extensions)) == ("cause", trace)
    job = await jobs.load(store, "J1")
    assert job
    assert (job.causation_id, job.trace) == ("cause", trace)


async def test_resolve_call_of_an_operator_is_validated_against_the_run(calls: CallHandler, station: Station) -> None:
    decision = {"JobOrderID": "J1", "Action": "see", "Resolution": "failed", "By": "anna", "Reason": "seen"}
    unknown = await calls.answer(call(RESOLVE_TYPE, "1", decision))
    assert status(unknown) == ReturnStatus.UNKNOWN_JOB_ORDER_ID
    async with station.at_work():
        await calls.answer(method("StoreAndStart", "2", order("J1")))
        async with asyncio.timeout(60):
            while not await station.runs.load("J1"):
                pass
    running = await calls.answer(call(RESOLVE_TYPE, "3", decision))
    assert status(running) == ReturnStatus.INVALID_JOB_ORDER_STATUS
    assert "not unknown" in (running.mdcserrormessage or "")
    nobody = await calls.answer(call(RESOLVE_TYPE, "4", {"JobOrderID": "J1", "Action": "see", "Resolution": "maybe"}))
    assert nobody.mdcserrorkind == "invalid_payload"
