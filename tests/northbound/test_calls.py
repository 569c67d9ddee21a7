"""A call is acted on and answered the same, whichever way it came."""

from collections.abc import Callable

import pytest

from edge.errors import Refused
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import METHOD_TYPE, REFUSED_TYPE
from edge.model.isa95 import MethodAnswer, ReturnStatus
from edge.northbound.calls import Calls, Incoming
from edge.station.jobs import JobService
from edge.store import jobs
from edge.store.client import Store
from tests.northbound.calling import SCOPE, opened_station, order

STORE = METHOD_TYPE.format("Store")


@pytest.fixture
async def calls(store: Store) -> Calls:
    station = await opened_station(store)
    job_service = JobService(store, station.runs, max_job_orders=1000, dedupe_ms=60_000)
    return Calls("urn:edge", (SCOPE,), job_service, station.settings)


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
