"""Calls that change something have an audit record; calls that only read have none."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from edge.access.audit_trail import open_trail
from edge.foundation.instant import now_ms
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import CONFIG_TYPE, METHOD_TYPE
from edge.northbound.calls import CallHandler, CallServices, IncomingCall
from edge.station.jobs import JobService
from edge.store import audit
from edge.store.client import Store
from tests.northbound.calling import SCOPE, opened_station, order

TOPIC = f"app/jobs/{SCOPE}/commands"


@pytest.fixture
async def calls(store: Store) -> AsyncIterator[CallHandler]:
    station = await opened_station(store)
    service = JobService(store, station.runs, max_job_orders=1000, dedupe_ms=60_000)
    async with open_trail(store, "gw-1", 1000, now_ms) as trail:
        yield CallHandler("urn:edge", (SCOPE,), store, CallServices(service, station.settings), now_ms, trail=trail)


async def test_changing_calls_are_recorded_with_source_and_result(calls: CallHandler, store: Store) -> None:
    events = (
        CloudEvent(id="1", source="/mes", type=METHOD_TYPE.format("Store"), data=order("J1")),
        CloudEvent(id="2", source="/mes", type=METHOD_TYPE.format("Start"), data={"JobOrderID": "none"}),
        CloudEvent(
            id="3", source="/mes", type=METHOD_TYPE.format("RequestJobResponseByJobOrderID"), data={"JobOrderID": "J1"}
        ),
        CloudEvent(id="4", source="/mes", type=CONFIG_TYPE.format("equipment"), data=[{"ID": "wrench"}]),
    )
    for event in events:
        await calls.answer(IncomingCall(event, {}, SCOPE, TOPIC))
    await calls.answer(IncomingCall(events[0], {}, SCOPE, "rpc"))
    records: list[dict[str, str]] = []
    async with asyncio.timeout(60):
        while len(records) < 4:
            records = [json.loads(sealed_record.text) for sealed_record in await audit.newest(store, 10)]
    assert [(record["kind"], record["action"], record["subject"]) for record in records] == [
        ("mes.call", "Store", "J1"),
        ("mes.call", "Start", "none"),
        ("mes.call", "PUT equipment", SCOPE),
        ("rpc.call", "Store", "J1"),
    ]
    assert {(record["user"], record["instance"]) for record in records} == {("/mes", "gw-1")}
    assert [record["status"] == "Good" for record in records] == [True, False, True, True]
    assert [record.get("address") for record in records] == [TOPIC, TOPIC, TOPIC, None]


async def test_call_that_two_gateways_receive_is_recorded_once(store: Store) -> None:
    station = await opened_station(store)
    service = JobService(store, station.runs, max_job_orders=1000, dedupe_ms=60_000)
    cloud_event = CloudEvent(id="1", source="/mes", type=METHOD_TYPE.format("Store"), data=order("J1"))
    setting = CloudEvent(id="2", source="/mes", type=CONFIG_TYPE.format("equipment"), data=[{"ID": "wrench"}])
    async with open_trail(store, "gw-1", 1000, now_ms) as audit_trail, open_trail(store, "gw-2", 1000, now_ms) as two:
        gateways = [
            CallHandler("urn:edge", (SCOPE,), store, CallServices(service, station.settings), now_ms, trail=trail)
            for trail in (audit_trail, two)
        ]
        for event in (cloud_event, setting, cloud_event):
            for gateway in gateways:
                await gateway.answer(IncomingCall(event, {}, SCOPE, TOPIC))
    records = [json.loads(sealed_record.text) for sealed_record in await audit.newest(store, 10)]
    assert [(record["action"], record["instance"]) for record in records] == [
        ("Store", "gw-1"),
        ("PUT equipment", "gw-1"),
    ]
