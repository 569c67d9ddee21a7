"""A client reads and monitors the requested range of an array."""

import asyncio

import pytest
from asyncua import Client, ua

from edge.opcua.value_reads import is_valid_range, part_of
from edge.uaserver.server import UaServer
from tests.uaserver.running import Space, entry

pytestmark = pytest.mark.asyncio(loop_scope="module")

NO_DATA = ua.StatusCode(ua.StatusCodes.BadIndexRangeNoData)
INVALID = ua.StatusCode(ua.StatusCodes.BadIndexRangeInvalid)


def value(content: object, kind: ua.VariantType, *, is_array: bool = False) -> ua.DataValue:
    return ua.DataValue(ua.Variant(content, kind, is_array=is_array))


def numbers(*content: int) -> ua.DataValue:
    return value(list(content), ua.VariantType.Int32, is_array=True)


@pytest.mark.parametrize(
    ("text", "found"),
    [("0", [1]), ("2", [3]), ("0:1", [1, 2]), ("1:2", [2, 3]), ("2:3000000000", [3])],
)
async def test_a_range_of_an_array_is_an_array(text: str, found: list[int]) -> None:
    assert part_of(numbers(1, 2, 3), text).Value == ua.Variant(found, ua.VariantType.Int32, is_array=True)


@pytest.mark.parametrize("text", ["3", "3:5", "0,1", "0:1,0:1"])
async def test_range_outside_the_array_has_no_data(text: str) -> None:
    assert part_of(numbers(1, 2, 3), text).StatusCode == NO_DATA


async def test_index_range_applies_to_strings_but_not_to_scalars() -> None:
    assert part_of(value(1, ua.VariantType.Int32), "0").StatusCode == NO_DATA
    assert part_of(value("torque", ua.VariantType.String), "1:2").Value.Value == "or"
    assert part_of(ua.DataValue(ua.Variant()), "0").StatusCode == NO_DATA


@pytest.mark.parametrize("text", ["", "a", "-1", "1:", ":1", "2:1", "1:1", "1:2:3", "1 :2", "0,", "٣", "1" * 20])
async def test_malformed_index_range_is_refused(text: str) -> None:
    assert not is_valid_range(text)
    assert part_of(numbers(1, 2, 3), text).StatusCode == INVALID


async def test_data_value_without_a_value_keeps_its_status() -> None:
    unknown = ua.DataValue(StatusCode=ua.StatusCode(ua.StatusCodes.BadNodeIdUnknown))
    assert part_of(unknown, "0") is unknown


async def test_a_client_reads_a_part_of_the_job_orders(jobs: UaServer, client: Client, space: Space) -> None:
    for number in range(3):
        jobs.show("station-1", entry(f"job-{number}"), None)
    node = (await space.job_order_list()).nodeid
    ranges = ("1:2", "0", "3", "x")
    asked = [ua.ReadValueId(node, ua.AttributeIds.Value, IndexRange=range_) for range_ in ranges]
    two, one, none, invalid = await client.uaclient.read(ua.ReadParameters(NodesToRead=asked))
    assert [item.JobOrder.JobOrderID for item in two.Value.Value] == ["job-1", "job-2"]
    assert [item.JobOrder.JobOrderID for item in one.Value.Value] == ["job-0"]
    assert (none.StatusCode, invalid.StatusCode) == (NO_DATA, INVALID)


async def test_monitored_range_reports_changes_of_its_range_only(jobs: UaServer, client: Client, space: Space) -> None:
    heard = asyncio.Queue[ua.DataValue]()

    class Listener:
        def datachange_notification(self, _node: object, _value: object, data: object) -> None:
            heard.put_nowait(data.monitored_item.Value)  # type: ignore[attr-defined]

    node = await space.job_order_list()
    subscription = await client.create_subscription(50, Listener())
    request = ua.MonitoredItemCreateRequest(
        ItemToMonitor=ua.ReadValueId(node.nodeid, ua.AttributeIds.Value, IndexRange="1"),
        MonitoringMode=ua.MonitoringMode.Reporting,
        RequestedParameters=ua.MonitoringParameters(ClientHandle=7, QueueSize=10),
    )
    await subscription.create_monitored_items([request])
    async with asyncio.timeout(60):
        assert (await heard.get()).StatusCode == NO_DATA
        jobs.show("station-1", entry("job-0"), None)
        jobs.show("station-1", entry("job-1"), None)
        assert [item.JobOrder.JobOrderID for item in (await heard.get()).Value.Value] == ["job-1"]
    request.ItemToMonitor.IndexRange = "2:1"
    (refused,) = await subscription.create_monitored_items([request])
    assert refused == INVALID
    await subscription.delete()
