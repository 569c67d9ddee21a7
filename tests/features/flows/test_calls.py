"""The MES registers, starts, stops, terminates, reads and deletes flows; a repeated event has no second effect."""

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, RpcSettings, Settings
from edge.features.flows.calls import FlowCall, FlowCalls
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.public_flow import PublicFlow
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.settings import FlowsSettings
from edge.features.flows.state import FlowStatus
from edge.foundation.instant import now_ms
from edge.links.rpc import open_client
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import CONFIG_TYPE, FLOW_METHOD_TYPE
from edge.model.isa95 import read_payload
from edge.northbound.calls import CallHandler, CallServices, IncomingCall
from edge.station.jobs import JobService
from edge.station.settings import SettingsMethod
from edge.store import dedupe
from edge.store.client import Store
from edge.store.commit import Commit, CommitResult
from tests.app.running import NO_OPCUA
from tests.features.flows.documents import flow, node, nodes_of
from tests.features.flows.gateways import CHAIN, FakeOutside, Plant
from tests.northbound.calling import SCOPE, opened_station

_numbers = itertools.count()


@pytest.fixture
def plant(store: Store) -> Plant:
    """Gateways on the store of the test."""
    return Plant(RedisFlowState(store))


@pytest.fixture
async def calls(store: Store, plant: Plant) -> CallHandler:
    station = await opened_station(store)
    jobs = JobService(store, station.runs, max_job_orders=10, dedupe_ms=60_000)

    def service_with(also: Commit) -> FlowService:
        return FlowService(RedisFlowState(store, also), plant.plans, plant.clock)

    flows = FlowCalls(service_with, store, 60_000)
    return CallHandler("urn:edge", (SCOPE,), store, CallServices(jobs, station.settings, further=flows.table), now_ms)


async def send(calls: CallHandler, event_type: str, data: Any, event_id: str = "", **extensions: str) -> CloudEvent:
    identity = event_id or f"e{next(_numbers)}"
    event = CloudEvent(id=identity, source="/mes", type=event_type, subject=SCOPE, data=data, extensions=extensions)
    return await calls.answer(IncomingCall(event, {}, SCOPE, "test"))


async def configure(calls: CallHandler, data: Any, method: str = "PUT", event_id: str = "") -> CloudEvent:
    return await send(calls, CONFIG_TYPE.format("flow"), data, event_id, method=method)


async def call(calls: CallHandler, method: str, event_id: str = "", **arguments: Any) -> CloudEvent:
    return await send(calls, FLOW_METHOD_TYPE.format(method), {"FlowID": "flow", **arguments}, event_id)


async def test_flow_is_registered_started_read_and_deleted(calls: CallHandler, plant: Plant) -> None:
    async with plant.gateway():
        assert (await configure(calls, CHAIN)).mdcserrorkind is None
        started = await call(calls, "Start")
        assert isinstance(started.data, PublicFlow)
        assert started.data.status in {"running", "completed"}
        await plant.ended()
    answer = await configure(calls, {"id": "flow"}, "GET")
    assert isinstance(answer.data, list)
    assert answer.data[0].cycle.statistics["completed"] == 3
    assert (await configure(calls, None, "GET")).data == answer.data
    assert (await configure(calls, [{"id": "flow"}], "DELETE")).mdcserrorkind is None
    assert (await configure(calls, None, "GET")).data == []


async def test_answers_have_the_former_form_with_event_version_1(store: Store, plant: Plant) -> None:
    def service_with(also: Commit) -> FlowService:
        return FlowService(RedisFlowState(store, also), plant.plans, plant.clock)

    calls = FlowCalls(service_with, store, 60_000, version=1)
    async with plant.gateway():
        await plant.run(CHAIN)
        record = await plant.ended()
    answer = await calls.configure(SettingsMethod.GET, CloudEvent(id="1", source="/mes", type="", data=None))
    assert isinstance(answer.data, list)
    (status,) = answer.data
    assert (status["id"], status["status"], status["next_execution"]) == ("flow", "completed", None)
    assert (status["structure"]["entry_nodes"], status["cycle"]["end_time"]) == (("read",), record.ended_at)
    assert status["cycle"]["nodes"]["double"]["output"] == 42
    assert status["cycle"]["nodes"]["double"]["ended_at"] == record.cycle.tasks["double"].ended_at


async def test_all_faults_of_a_flow_are_answered_together(calls: CallHandler) -> None:
    answer = await configure(calls, flow([node("a", "nothing"), node("a", "merge")], cron="x"))
    assert answer.mdcserrorkind == "invalid_payload"
    for kind in ("unknown_kind", "duplicate_node", "invalid_schedule"):
        assert kind in str(answer.mdcserrormessage)


async def test_list_with_a_faulty_flow_stores_none_of_its_flows(calls: CallHandler) -> None:
    faulty = {**CHAIN, "id": "other", "cron": "x"}
    answer = await configure(calls, [{**CHAIN, "interval_seconds": 3600}, faulty])
    assert answer.mdcserrorkind == "invalid_payload"
    assert "'other' has faults" in str(answer.mdcserrormessage)
    assert (await configure(calls, None, "GET")).data == []


@pytest.mark.parametrize("data", ["text", 5, [5], {}, {"id": 5}])
async def test_invalid_flow_payload_is_refused(calls: CallHandler, data: object) -> None:
    for method in ("PUT", "DELETE", "GET"):
        assert (await configure(calls, data, method)).mdcserrorkind == "invalid_payload"


@pytest.mark.parametrize("method", ["Start", "Stop", "Terminate"])
async def test_unknown_flow_and_wrong_arguments_are_refused(calls: CallHandler, method: str) -> None:
    assert (await call(calls, method)).mdcserrorkind == "unknown_flow"
    assert (await send(calls, FLOW_METHOD_TYPE.format(method), {"Flow": 1})).mdcserrorkind == "invalid_payload"


async def test_repeated_event_has_no_second_effect(calls: CallHandler, plant: Plant) -> None:
    await configure(calls, {**CHAIN, "interval_seconds": 3600})
    await call(calls, "Start", "start-1")
    await call(calls, "Stop", Reason="night", By="bo")
    answer = await call(calls, "Start", "start-1")
    assert isinstance(answer.data, PublicFlow)
    assert (answer.data.status, answer.data.reason) == ("stopped", "night")
    assert (await plant.service.load("flow")).status is FlowStatus.STOPPED


async def test_stop_without_a_reason_names_its_caller(calls: CallHandler) -> None:
    await configure(calls, {**CHAIN, "interval_seconds": 3600})
    for by, reason in ((None, "Stop by the MES"), ("bo", "Stop by bo")):
        await call(calls, "Start")
        answer = await call(calls, "Stop", **({"By": by} if by else {}))
        assert isinstance(answer.data, PublicFlow)
        assert answer.data.reason == reason


async def test_effect_of_a_call_and_its_mark_are_one_commit(calls: CallHandler, store: Store, plant: Plant) -> None:
    """A start that is delivered again, because its answer was lost, must not start a flow that was stopped since."""
    await configure(calls, {**CHAIN, "interval_seconds": 3600})
    marked: list[bool] = []

    async def watch(commit: Commit) -> CommitResult:
        result = await Store.commit(store, commit)
        marked.append(await dedupe.load_answer(store, "/mes", "start-1") is not None)
        return result

    store.commit = watch  # type: ignore[method-assign]
    await call(calls, "Start", "start-1")
    assert marked[0]
    await plant.service.stop("flow", "night")
    await call(calls, "Start", "start-1")
    assert (await plant.service.load("flow")).status is FlowStatus.STOPPED


async def test_deletion_of_an_unknown_flow_succeeds(calls: CallHandler) -> None:
    assert (await configure(calls, [{"id": "none"}], "DELETE")).mdcserrorkind is None


async def test_running_cycle_is_terminated_with_the_flow_or_in_part(calls: CallHandler, plant: Plant) -> None:
    outside = FakeOutside()
    outside.hold()
    async with plant.gateway(outside=outside):
        await configure(calls, {**CHAIN, "interval_seconds": 0.05})
        await call(calls, "Start")
        await plant.at("read")
        await call(calls, "Terminate", Node="read", Reason="wrong tag")
        await call(calls, "Terminate", Reason="enough")
        record = await plant.service.load("flow")
    assert (record.status, record.reason) == (FlowStatus.STOPPED, "enough")
    cycle = await plant.service.load_cycle(record, 0)
    assert cycle
    assert cycle.cycle.tasks["read"].reason == "wrong tag"


async def test_gateway_without_flows_refuses_their_calls(store: Store) -> None:
    station = await opened_station(store)
    jobs = JobService(store, station.runs, max_job_orders=10, dedupe_ms=60_000)
    without = CallHandler("urn:edge", (SCOPE,), store, CallServices(jobs, station.settings), now_ms)
    assert (await call(without, "Start")).mdcserrorkind == "unknown_type"
    assert (await configure(without, CHAIN)).mdcserrorkind == "unknown_type"


PUT = CONFIG_TYPE.format("flow")
MEAN = flow([node("a", "constant", value=[1, 3]), node("mean", "aggregate", of="mean")], "a>mean", interval_seconds=0)


@pytest.fixture
async def socket() -> AsyncIterator[str]:
    """An address that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        yield f"unix://{directory}/rpc.sock"


def settings(redis: RedisSettings, socket: str, directory: Path, run: Any) -> Settings:
    flows = FlowsSettings(run=run, directory=str(directory))
    rpc = RpcSettings(listen=socket)
    return Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA, sections={"flows": flows}, rpc=rpc)


async def test_flow_registered_by_a_sidecar_runs(redis: RedisSettings, socket: str, tmp_path: Path) -> None:
    async with (
        asyncio.timeout(60),
        open_gateway(settings(redis, socket, tmp_path, "on")),
        open_client(socket) as client,
    ):
        put = await client.publish(CloudEvent(id="1", source="/sidecar", type=PUT, data=MEAN))
        assert put.mdcserrorkind is None
        start = CloudEvent(id="2", source="/sidecar", type=FLOW_METHOD_TYPE.format("Start"), data={"FlowID": "flow"})
        assert (await client.publish(start)).mdcserrorkind is None
        number = 3
        while True:
            read = CloudEvent(id=str(number), source="/sidecar", type=PUT, extensions={"method": "GET"})
            answer = await client.publish(read)
            assert isinstance(answer.data, list)
            if answer.data[0]["flow"]["status"] == "completed":
                break
            number += 1
        assert nodes_of(answer.data[0]["cycle"])["mean"]["output"] == 2.0


async def test_gateway_without_flows_refuses_flow_calls(redis: RedisSettings, socket: str, tmp_path: Path) -> None:
    async with open_gateway(settings(redis, socket, tmp_path, "off")), open_client(socket) as client:
        answer = await client.publish(CloudEvent(id="1", source="/sidecar", type=PUT, data=MEAN))
        assert answer.mdcserrorkind == "unknown_type"


def test_arguments_are_read() -> None:
    call = read_payload({"FlowID": "f", "Reason": "night", "By": "bo", "Component": 1}, FlowCall)
    assert call == FlowCall(flow_id="f", reason="night", by="bo", component=1)


@pytest.mark.parametrize("data", [None, {}, {"FlowID": 5}, {"FlowID": "f", "Component": "x"}])
def test_wrong_arguments_are_refused(data: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_payload(data, FlowCall)
