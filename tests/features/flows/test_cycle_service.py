"""Flows are changed on request; an impossible request is refused with the reason."""

from collections.abc import Awaitable, Callable

import pytest

from edge.features.flows.cycle import CycleStatus
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.plan import FaultKind
from edge.foundation.errors import Refused
from tests.features.flows.documents import flow, node
from tests.features.flows.gateways import CHAIN, FakeOutside, Plant, reasons, statuses

Call = Callable[[FlowService], Awaitable[object]]


async def test_document_with_faults_is_not_registered(plant: Plant) -> None:
    faults = await plant.service.put(flow([node("a", "nothing")], cron="x"))
    assert isinstance(faults, tuple)
    assert {fault.kind for fault in faults} == {FaultKind.UNKNOWN_KIND, FaultKind.INVALID_SCHEDULE}
    assert await plant.service.load_all() == []


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda service: service.start("x"), "unknown_flow"),
        (lambda service: service.stop("x", "r"), "unknown_flow"),
        (lambda service: service.delete("x"), "unknown_flow"),
        (lambda service: service.terminate("flow", "r"), "no_cycle"),
        (lambda service: service.stop_component("flow", 0), "no_cycle"),
        (lambda service: service.stop("flow", ""), "invalid_payload"),
        (lambda service: service.stop("flow", "r" * 1001), "invalid_payload"),
    ],
)
async def test_call_with_unknown_flow_missing_cycle_or_bad_reason_is_refused(
    plant: Plant, call: Call, kind: str
) -> None:
    await plant.service.put(CHAIN)
    with pytest.raises(Refused) as refusal:
        await call(plant.service)
    assert refusal.value.kind == kind


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda service: service.terminate("flow", "r", node="none"), "unknown_node"),
        (lambda service: service.terminate("flow", "r", component=1), "unknown_component"),
        (lambda service: service.stop_component("flow", -1), "unknown_component"),
    ],
)
async def test_unknown_part_of_a_cycle_is_refused(plant: Plant, outside: FakeOutside, call: Call, kind: str) -> None:
    outside.hold()
    async with plant.gateway(outside=outside):
        await plant.run(CHAIN)
        await plant.at("read")
        with pytest.raises(Refused) as refusal:
            await call(plant.service)
    assert refusal.value.kind == kind


async def test_terminated_component_does_not_affect_the_others(plant: Plant, outside: FakeOutside) -> None:
    outside.hold()
    other = node("other", "tag.latest", tag="o")
    async with plant.gateway(outside=outside):
        await plant.run({**CHAIN, "nodes": [*CHAIN["nodes"], other]})
        await plant.at("other")
        await plant.service.terminate("flow", "wrong part", component=0)
        outside.release()
        record = await plant.ended()
    assert statuses(record) == {"read": "terminated", "double": "skipped", "send": "skipped", "other": "completed"}
    assert record.cycle.status is CycleStatus.TERMINATED


async def test_terminated_cycle_ends_at_once(plant: Plant, outside: FakeOutside) -> None:
    outside.hold()
    async with plant.gateway(outside=outside):
        await plant.run(CHAIN)
        await plant.at("read")
        record = await plant.service.terminate("flow", "wrong shift")
        assert record.ended_at is not None
        assert reasons(record)["read"] == "wrong shift"
        assert (await plant.service.load("flow")).ended == {CycleStatus.TERMINATED: 1}


async def test_flows_are_listed_in_order_of_their_ids(plant: Plant) -> None:
    for name in ("b", "a"):
        await plant.service.put({**CHAIN, "id": name})
    assert [flow_record.flow_id for flow_record in await plant.service.load_all()] == ["a", "b"]
