"""A client on another stack (node-opcua) reads the changes of job states from the past."""

import contextlib
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from edge.foundation.instant import now_ms
from edge.model.job_state import Cause, JobState, JobStatus, SubState
from edge.store import changes
from edge.store.client import Store
from edge.store.commit import join, operation
from edge.store.server_time import server_time
from tests.features.telemetry.opcua.alarm_plant import HOT, alarm_server, change
from tests.features.telemetry.opcua.history_client import HistoryClient, instant
from tests.uaserver.other_stack import node, other_stack, value_of

pytestmark = pytest.mark.slow

SERVER = "i=2253"
RESULTS = "ns=8;s=station-1/MachineryBuildingBlocks/JobManagement/JobOrderResults"
ENDED = JobStatus(JobState.ENDED, SubState.COMPLETED)
STEPS = (
    (Cause.STORE, JobStatus(JobState.NOT_ALLOWED_TO_START)),
    (Cause.START, JobStatus(JobState.ALLOWED_TO_START)),
    (Cause.RUN, JobStatus(JobState.RUNNING)),
    (Cause.COMPLETE, ENDED),
    (Cause.CLEAR, ENDED),
)
OPERAND = {"$": "SimpleAttributeOperand", "typeDefinitionId": node("i=2041"), "attributeId": 13}


def field(name: str) -> dict[str, Any]:
    return OPERAND | {"browsePath": [{"$": "QualifiedName", "name": name}]}


class Past:
    """Reads events by pages."""

    def __init__(self, history: HistoryClient) -> None:
        self.history = history
        self.since = now_ms() - 1000

    async def page(self, node_id: str, point: str = "", **others: Any) -> dict[str, Any]:
        """Read a page of events; `point` is a continuation point."""
        given: dict[str, Any] = {
            "startTime": instant(self.since),
            "endTime": instant(now_ms() + 60_000),
            "numValuesPerNode": 0,
        } | others
        names = given.pop("names", ["Message"])
        where = given.pop("where", None)
        asked: dict[str, Any] = {"$": "EventFilter", "selectClauses": [field(name) for name in names]}
        if where is not None:
            asked["whereClause"] = {"$": "ContentFilter", "elements": [where]}
        wanted: dict[str, Any] = {"nodeId": node(node_id)}
        if point:
            wanted["continuationPoint"] = {"$": "Buffer", "hex": point}
        answer = await self.history.send("ReadEventDetails", given | {"filter": asked}, [wanted])
        (result,) = answer["results"]
        found: dict[str, Any] = result
        return found

    async def messages(self, node_id: str, **others: Any) -> list[str]:
        """Return the texts of all events, page by page."""
        found, point = [], ""
        while True:
            result = await self.page(node_id, point, **others)
            events = result["historyData"]["events"] if result["historyData"] else []
            found += [event["eventFields"][0]["value"]["text"] for event in events]
            point = result["continuationPoint"] or ""
            if not point:
                return found


@pytest_asyncio.fixture
async def past(store: Store) -> AsyncIterator[Past]:
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(alarm_server(store))
        yield Past(HistoryClient(await stack.enter_async_context(other_stack(server.endpoint))))


async def run_jobs(store: Store, *job_ids: str) -> None:
    for job_id in job_ids:
        appended = (
            changes.append_change(store.keys, "station-1", job_id, cause, status, now_ms()) for cause, status in STEPS
        )
        await store.commit(join(appended))


async def next_millisecond(store: Store) -> None:
    """Wait until entries of the store get a later instant than those before."""
    before = await server_time(store)
    while await server_time(store) <= before:
        pass


TEXTS = ["AllowedToStart", "Running", "Ended"]


async def test_event_notifier_with_past_events_has_the_history_bit(past: Past) -> None:
    # OPC 10000-3, 8.59: bit 0 SubscribeToEvents, bit 2 HistoryRead.
    notifiers = [value_of(text, attributeId=12) for text in (SERVER, RESULTS)]
    read = await past.history.other.read(*notifiers)
    assert [entry["value"]["value"] for entry in read] == [0b101, 0b101]


async def test_changes_of_jobs_are_read_in_pages_both_ways(past: Past, store: Store) -> None:
    await run_jobs(store, "a", "b")
    expected = [f"{job}: {text}" for job in ("a", "b") for text in TEXTS]
    for node_id in (RESULTS, SERVER):
        for size in (0, 1, 4, 6):
            assert await past.messages(node_id, numValuesPerNode=size) == expected
    backward = {"startTime": instant(now_ms() + 60_000), "endTime": instant(past.since)}
    assert await past.messages(RESULTS, numValuesPerNode=4, **backward) == expected[::-1]


async def test_alarms_and_jobs_are_sorted_by_time(past: Past, store: Store) -> None:
    await run_jobs(store, "a")
    await next_millisecond(store)
    await change(store, "wrench.temp", HOT)
    await next_millisecond(store)
    await run_jobs(store, "b")
    between = [*(f"a: {text}" for text in TEXTS), "too hot", *(f"b: {text}" for text in TEXTS)]
    assert await past.messages(SERVER, numValuesPerNode=2) == between
    assert await past.messages("ns=8;s=station-1") == between


async def test_events_of_the_same_millisecond_are_sorted_by_their_source(past: Past, store: Store) -> None:
    await run_jobs(store, "a")
    await change(store, "wrench.temp", HOT)
    for stream in (store.keys.joborder_changes("station-1"), store.keys.alarm_changes()):
        entries = await store.execute("XRANGE", stream, "-", "+")
        await store.execute("DEL", stream)
        for number, (_, fields) in enumerate(entries):
            await store.execute("XADD", stream, f"{past.since}-{number}", *itertools.chain(*fields.items()))
    expected = ["too hot", *(f"a: {text}" for text in TEXTS)]
    backward = {"startTime": instant(past.since + 1), "endTime": instant(past.since - 1)}
    for size in (0, 1, 2):
        assert await past.messages(SERVER, numValuesPerNode=size) == expected
        assert await past.messages(SERVER, numValuesPerNode=size, **backward) == expected[::-1]


async def test_a_where_clause_and_select_clauses_apply_to_jobs(past: Past, store: Store) -> None:
    await run_jobs(store, "a")
    await change(store, "wrench.temp", HOT)
    low = {"$": "LiteralOperand", "value": {"$": "Variant", "dataType": 5, "value": 100}}
    is_low = {"$": "ContentFilterElement", "filterOperator": 0, "filterOperands": [field("Severity"), low]}
    assert await past.messages(SERVER, where=is_low) == [f"a: {text}" for text in TEXTS]
    result = await past.page(RESULTS, names=["EventId", "Severity", "JobOrder", "JobState", "Unknown"])
    (_, _, last) = result["historyData"]["events"]
    again = await past.page(RESULTS, names=["EventId"])
    assert again["historyData"]["events"][2]["eventFields"][0] == last["eventFields"][0]
    assert last["eventFields"][1]["value"] == 100
    assert last["eventFields"][4].get("value") is None


async def test_unreadable_entry_does_not_hide_other_entries(past: Past, store: Store) -> None:
    stream = store.keys.joborder_changes("station-1")
    await store.commit(join(operation("XADD", stream, "*", "nonsense", str(number)) for number in range(200)))
    await run_jobs(store, "a")
    assert await past.messages(RESULTS) == [f"a: {text}" for text in TEXTS]
