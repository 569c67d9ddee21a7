"""A sidecar calls the gateway as the MES does, and receives the same events."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from edge.config import RpcSettings
from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.links.rpc import Client, OnEvent, open_client
from edge.model.cloudevent import MSGPACK, CloudEvent, new_id
from edge.model.event_types import CONFIG_TYPE, METHOD_TYPE, PROGRESS_TYPE, STATUS_EVENT_TYPE
from edge.model.job_state import JobState
from edge.northbound.calls import CallHandler, CallServices, IncomingCall
from edge.northbound.rpc import open_rpc
from edge.station.jobs import JobService
from edge.store import components, dead_letters, jobs
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.northbound.calling import SCOPE, WORK_MASTER, Station, opened_station, order


@dataclass(frozen=True, slots=True)
class Bench:
    store: Store
    station: Station
    calls: CallHandler
    url: str


@asynccontextmanager
async def opened(store: Store, directory: Path, *scopes: str) -> AsyncIterator[Bench]:
    station = await opened_station(store)
    job_service = JobService(store, station.runs, max_job_orders=1000, dedupe_ms=60_000)
    calls = CallHandler("urn:edge", scopes, store, CallServices(job_service, station.settings), now_ms)
    settings = RpcSettings(listen=f"unix://{directory}/rpc.sock")
    async with open_rpc(settings, store, station.runs, calls, "urn:edge", scopes) as url:
        yield Bench(store, station, calls, url)


@pytest.fixture
async def bench(store: Store, tmp_path: Path) -> AsyncIterator[Bench]:
    async with opened(store, tmp_path, SCOPE) as bench:
        yield bench


@pytest.fixture
async def client(bench: Bench) -> AsyncIterator[Client]:
    async with open_client(bench.url) as client:
        yield client


def call(method: str, data: object, **further: Any) -> CloudEvent:
    event_type = METHOD_TYPE.format(method)
    return CloudEvent(id=new_id(), source="/stand", type=event_type, data=data, **further)


async def test_job_method_is_executed_and_answered_as_over_mqtt(client: Client, bench: Bench) -> None:
    event = call("Store", order("J1"), correlationid="flow")
    answer = await client.publish(event)
    assert answer.data == {"ReturnStatus": 1}
    assert (answer.source, answer.type, answer.causationid, answer.correlationid) == (
        "urn:edge",
        event.type,
        event.id,
        "flow",
    )
    job = await jobs.load(bench.store, "J1")
    assert job
    assert job.status.state is JobState.NOT_ALLOWED_TO_START
    declined = await client.publish(call("Start", {"JobOrderID": "J2"}))
    assert declined.data == {"ReturnStatus": 2, "Reason": "no such job order in this scope"}
    assert "no such job order" in (declined.mdcserrormessage or "")


async def test_answer_has_the_form_of_the_call(client: Client) -> None:
    event = {"id": "1", "source": "/stand", "type": METHOD_TYPE.format("Store"), "subject": None, "custom": 5}
    payload = json.dumps(order("J1")).encode()
    forms = {
        "structure": (order("J1"), {"ReturnStatus": 1}),
        "bytes": (payload, b'{"ReturnStatus":1}'),
        "base64": (base64.encodebytes(payload).decode(), base64.b64encode(b'{"ReturnStatus":1}').decode()),
    }
    for data, expected in forms.values():
        # The same event again: the same answer.
        (answer,) = await client.call("publish", event | {"data": data}, {"mqtt_topic": "none"})
        assert answer["data"] == expected
        assert answer["causationid"] == "1"
    (answer,) = await client.call("publish", event | {"datacontenttype": MSGPACK, "data": b"\x80", "id": "2"}, None)
    assert answer["mdcserrorkind"] == "invalid_payload"


async def test_event_received_over_two_transports_has_one_effect(client: Client, bench: Bench) -> None:
    event = call("Store", order("J1"))
    first = await bench.calls.answer(IncomingCall(event, {}, SCOPE, "another"))
    assert first.mdcserrorkind is None
    assert (await client.publish(event)).data == {"ReturnStatus": 1}
    assert (await client.publish(call("Store", order("J1")))).data["ReturnStatus"] == 8


async def test_station_settings_are_accepted(client: Client) -> None:
    answer = await client.publish(
        CloudEvent(id="1", source="/stand", type=CONFIG_TYPE.format("equipment"), data={"ID": "Wrench-1"})
    )
    assert (answer.data, answer.mdcserrorkind) == (None, None)


async def test_refused_event_is_answered_with_its_kind_and_stored(client: Client, bench: Bench) -> None:
    unknown = await client.publish(CloudEvent(id="1", source="/stand", type="none.v1"))
    assert unknown.mdcserrorkind == "unknown_type"
    (unreadable,) = await client.call("publish", {"id": "7", "type": "none.v1"})
    assert (unreadable["mdcserrorkind"], unreadable["causationid"]) == ("unreadable", "7")
    await client.call("publish", {"id": "8", "": b"\xff", (1, 2): {3: None}})
    refuseds = await dead_letters.newest_refused(bench.store, 3)
    assert refuseds[0].payload == b"{'id': '8', '': b'\\xff', (1, 2): {3: None}}"
    assert [item.event_id for item in refuseds] == ["8", "7", "1"]


@pytest.mark.parametrize("params", [[], [5], [{}, 5], [{}, {}, {}], [[]], ["event", {}]])
async def test_invalid_parameters_are_refused(client: Client, params: list[Any]) -> None:
    with pytest.raises(Refused, match="publish takes a CloudEvent") as refusal:
        await client.call("publish", *params)
    assert refusal.value.kind == "invalid_params"


async def test_heartbeat_is_answered_with_none(client: Client) -> None:
    assert await client.call("heartbeat", 1.5) is None
    assert await client.call("heartbeat") is None


async def test_event_without_scope_is_refused_with_several_scopes(store: Store, tmp_path: Path) -> None:
    async with opened(store, tmp_path, SCOPE, "station-2") as bench, open_client(bench.url) as client:
        answer = await client.publish(call("Store", order("J1")))
        assert answer.mdcserrorkind == "unknown_scope"
        assert (await client.publish(call("Store", order("J1"), subject=SCOPE))).data == {"ReturnStatus": 1}


def noting(received: list[CloudEvent]) -> OnEvent:
    async def note(event: CloudEvent) -> None:
        received.append(event)

    return note


async def test_transitions_and_progress_are_reported_to_every_client_in_order(
    bench: Bench, wait_until: WaitUntil
) -> None:
    cloud_events: list[CloudEvent] = []
    two: list[CloudEvent] = []
    async with (
        bench.station.at_work(),
        open_client(bench.url, on_event=noting(cloud_events)) as client,
        open_client(bench.url, on_event=noting(two)) as other,
    ):
        await other.call("heartbeat")
        await client.publish(call("StoreAndStart", order("J1", WORK_MASTER.id)))
        await wait_until(lambda: states(cloud_events))
        await client.publish(call("Stop", {"JobOrderID": "J1"}))
        await wait_until(
            lambda: states(cloud_events)[-1:] == [["Ended", "Closed"]] and states(two) == states(cloud_events)
        )
    assert states(cloud_events) == [["Running"], ["Ended", "Closed"]]
    assert len({event.id for event in cloud_events}) == len(cloud_events)
    assert [event.id for event in cloud_events if event.type == STATUS_EVENT_TYPE] == [
        event.id for event in two if event.type == STATUS_EVENT_TYPE
    ]
    progress = [event.data for event in cloud_events if event.type == PROGRESS_TYPE]
    assert progress[0]["job_order_id"] == "J1"
    assert progress[0]["steps"] == [{"step": "Wait", "active": True}]


def states(received: list[CloudEvent]) -> list[list[str]]:
    return [
        [state["StateText"]["Text"] for state in event.data["JobState"]]
        for event in received
        if event.type == STATUS_EVENT_TYPE
    ]


async def test_late_client_gets_only_events_after_its_connection(bench: Bench, wait_until: WaitUntil) -> None:
    async with bench.station.at_work(), open_client(bench.url) as early:
        await early.publish(call("StoreAndStart", order("J1")))
        received: list[CloudEvent] = []

        async def is_running() -> bool:
            job = await jobs.load(bench.store, "J1")
            return job is not None and job.status.state is JobState.RUNNING

        async with asyncio.timeout(60):
            while not await is_running():
                await early.call("heartbeat")
        async with open_client(bench.url, on_event=noting(received)) as late:
            await late.publish(call("Pause", {"JobOrderID": "J1"}))
            # The event of its start may arrive after the late client, too.
            await wait_until(lambda: states(received) and states(received)[-1][0] == "Interrupted")
    assert "AllowedToStart" not in {state[0] for state in states(received)}


async def test_sidecar_registers_as_a_component(bench: Bench, client: Client) -> None:
    asked = {"id": "camera-1", "token": "a random text", "version": "1.2"}
    assert await client.call("register", asked) == {"next_within_s": 15.0}
    assert (await components.load_all(bench.store))["camera-1"].component.kind == "sidecar"
    for wrong in ((), (asked | {"token": "another text"},), ({"id": "x"},), (asked | {"pid": 1},)):
        with pytest.raises(Refused):
            await client.call("register", *wrong)
