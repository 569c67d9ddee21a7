"""A client on another stack uses the services as specified in OPC 10000-4."""

import asyncio
import contextlib
import struct

import pytest

from edge.model.isa95 import WorkMaster
from edge.opcua import limits
from edge.uaserver.server import UaServer
from tests.uaserver.other_stack import BOTH, Faulted, OtherStack, node, other_stack, value_of
from tests.uaserver.running import entry

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

SERVER, CLOCK, LEVEL, STATE = "i=2253", "i=2258", "i=2267", "i=2256"
CONTROL = "ns=8;s=station-1/MachineryBuildingBlocks/JobManagement/JobOrderControl"
LIST, MASTERS = f"{CONTROL}/JobOrderList", f"{CONTROL}/WorkMaster"
SOURCE_TIME, SERVER_TIME, NEITHER = 0, 1, 3
SAMPLING, REPORTING = 1, 2
U_INT_32 = 7


class TestReads:
    @pytest.mark.parametrize(
        ("timestamps", "present"),
        [
            (SOURCE_TIME, ["sourceTimestamp"]),
            (SERVER_TIME, ["serverTimestamp"]),
            (BOTH, ["sourceTimestamp", "serverTimestamp"]),
            (NEITHER, []),
        ],
    )
    async def test_value_has_the_requested_timestamps(
        self, other: OtherStack, timestamps: int, present: list[str]
    ) -> None:
        for text in (CLOCK, LIST):
            (value,) = await other.read(value_of(text), timestamps=timestamps)
            assert [name for name in ("sourceTimestamp", "serverTimestamp") if value[name] is not None] == present

    async def test_only_values_have_a_source_timestamp(self, other: OtherStack) -> None:
        (name,) = await other.read({"nodeId": node(SERVER), "attributeId": 3})
        assert (name["sourceTimestamp"], name["serverTimestamp"] is not None) == (None, True)

    async def test_encoding_is_accepted_for_structures_only(self, other: OtherStack) -> None:
        asked = [
            value_of(STATE, dataEncoding={"name": "Default Binary"}),
            value_of(STATE, dataEncoding={"name": "Default XML"}),
            value_of(STATE, dataEncoding={"name": "nonsense"}),
            value_of(CLOCK, dataEncoding={"name": "Default Binary"}),
            {"nodeId": node(SERVER), "attributeId": 3, "dataEncoding": {"name": "Default Binary"}},
        ]
        assert [fields["statusCode"] for fields in await other.read(*asked)] == [
            "Good",
            "BadDataEncodingUnsupported",
            "BadDataEncodingUnsupported",
            "BadDataEncodingInvalid",
            "BadDataEncodingInvalid",
        ]


class TestMonitoredItems:
    async def test_change_has_the_requested_timestamps(self, other: OtherStack, subscription: int) -> None:
        await other.monitor(subscription, value_of(LEVEL), timestampsToReturn=NEITHER)
        (change,) = await other.changes(1)
        assert (change["value"]["sourceTimestamp"], change["value"]["serverTimestamp"]) == (None, None)

    async def test_an_item_with_another_encoding_is_refused(self, other: OtherStack, subscription: int) -> None:
        results = await other.monitor(
            subscription,
            value_of(STATE, dataEncoding={"name": "nonsense"}),
            value_of(CLOCK, dataEncoding={"name": "Default Binary"}),
        )
        assert [result["statusCode"] for result in results] == ["BadDataEncodingUnsupported", "BadDataEncodingInvalid"]

    async def test_a_triggering_item_reports_the_items_that_are_sampled(
        self, observed: UaServer, other: OtherStack, subscription: int
    ) -> None:
        items = await other.monitor(subscription, value_of(MASTERS), value_of(LIST, mode=SAMPLING))
        trigger, sampled = (item["monitoredItemId"] for item in items)
        (first,) = await other.changes(1)
        assert first["clientHandle"] == 0
        links = {"subscriptionId": subscription, "triggeringItemId": trigger}
        added = await other.send("SetTriggering", **links, linksToAdd=[sampled, 99_999])
        assert added["addResults"] == ["Good", "BadMonitoredItemIdInvalid"]
        observed.show("station-1", entry("job-1"), None)
        observed.work_masters("station-1", [WorkMaster(id="rear-axle")])
        changed = await other.changes(2)
        assert {fields["clientHandle"] for fields in changed} == {0, 1}
        removed = await other.send("SetTriggering", **links, linksToRemove=[sampled])
        assert removed["removeResults"] == ["Good"]
        observed.hide("station-1", "job-1")
        observed.work_masters("station-1", [])
        (alone,) = await other.changes(1)
        assert alone["clientHandle"] == 0

    async def test_triggering_needs_an_item_and_links(self, other: OtherStack, subscription: int) -> None:
        with pytest.raises(Faulted, match="BadNothingToDo"):
            await other.send("SetTriggering", subscriptionId=subscription, triggeringItemId=1)
        with pytest.raises(Faulted, match="BadMonitoredItemIdInvalid"):
            await other.send("SetTriggering", subscriptionId=subscription, triggeringItemId=1, linksToAdd=[2])

    async def test_a_sampled_item_reports_when_its_mode_changes(self, other: OtherStack, subscription: int) -> None:
        items = await other.monitor(subscription, value_of(LEVEL, mode=SAMPLING))
        ids = [item["monitoredItemId"] for item in items]
        mode = {"subscriptionId": subscription, "monitoredItemIds": ids, "monitoringMode": REPORTING}
        assert (await other.send("SetMonitoringMode", **mode))["results"] == ["Good"]
        assert len(await other.changes(1)) == 1


HELLO = struct.Struct("<3scIIIIIIi")


async def test_a_connection_beyond_the_limit_gets_an_error_message(observed: UaServer) -> None:
    """All connections are in use; the next client receives an error message."""
    host, port = observed.endpoint.removeprefix("opc.tcp://").split(":")
    async with other_stack(observed.endpoint) as crowd:
        for _ in range(limits.DEFAULTS.connections):
            with contextlib.suppress(AssertionError):
                await crowd.send("connect")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(HELLO.pack(b"HEL", b"F", HELLO.size, 0, 65535, 65535, 0, 0, -1))
        async with asyncio.timeout(30):
            answer = await reader.read()
        writer.close()
    assert (answer[:4], hex(*struct.unpack_from("<I", answer, 8))) == (b"ERRF", "0x80810000")
