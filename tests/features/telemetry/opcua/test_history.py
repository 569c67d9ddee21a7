"""HistoryRead pages its answers, and refuses with the statuses of OPC 10000-11."""

import pytest

from edge.features.telemetry.opcua.history import CONTINUATION_POINTS
from tests.features.telemetry.opcua.history_client import START, TAG, HistoryClient, instant, values
from tests.uaserver.other_stack import Faulted, node

pytestmark = pytest.mark.slow


async def test_raw_values_come_in_pages_with_continuation_points(history: HistoryClient) -> None:
    first = await history.raw(START, START + 10_000, 4)
    assert (first["statusCode"], values(first)) == ("Good", [0, 1, 2, 3])
    again = {"nodeId": node(TAG), "continuationPoint": {"$": "Buffer", "hex": first["continuationPoint"]}}
    details = {"startTime": instant(START), "endTime": instant(START + 10_000), "numValuesPerNode": 4}
    details |= {"isReadModified": False, "returnBounds": False}
    (second,) = (await history.send("ReadRawModifiedDetails", details, [again]))["results"]
    assert values(second) == [4, 5, 6, 7]
    (gone,) = (await history.send("ReadRawModifiedDetails", details, [again]))["results"]
    assert gone["statusCode"] == "BadContinuationPointInvalid"
    third = {"nodeId": node(TAG), "continuationPoint": {"$": "Buffer", "hex": second["continuationPoint"]}}
    released = await history.send("ReadRawModifiedDetails", details, [third], releaseContinuationPoints=True)
    assert [result["statusCode"] for result in released["results"]] == ["Good"]
    (gone,) = (await history.send("ReadRawModifiedDetails", details, [third]))["results"]
    assert gone["statusCode"] == "BadContinuationPointInvalid"


async def test_continuation_points_of_one_answer_are_not_released_by_it(history: HistoryClient) -> None:
    details = {"startTime": instant(START), "endTime": instant(START + 10_000), "numValuesPerNode": 1}
    details |= {"isReadModified": False, "returnBounds": False}
    tags = [{"nodeId": node(TAG)}] * (CONTINUATION_POINTS + 5)
    first = (await history.send("ReadRawModifiedDetails", details, tags))["results"]
    expected = ["Good"] * CONTINUATION_POINTS + ["BadNoContinuationPoints"] * 5
    assert [value["statusCode"] for value in first] == expected
    points = [value["continuationPoint"] for value in first[:CONTINUATION_POINTS]]
    again = [{"nodeId": node(TAG), "continuationPoint": {"$": "Buffer", "hex": point}} for point in points]
    second = (await history.send("ReadRawModifiedDetails", details, again))["results"]
    assert [values(value) for value in second] == [[1]] * CONTINUATION_POINTS


async def test_invalid_requests_are_refused_with_the_status_of_the_standard(history: HistoryClient) -> None:
    with pytest.raises(Faulted, match="BadTimestampsToReturnInvalid"):
        await history.raw(START, START + 1, timestampsToReturn=3)
    null = -11_644_473_600_000
    assert (await history.raw(null, null, 5))["statusCode"] == "BadHistoryOperationInvalid"
    assert (await history.raw(START, START + 1, node_id="i=2253"))["statusCode"] == "BadHistoryOperationUnsupported"
    assert (await history.raw(START, START + 1, node_id="ns=10;s=Tags/x"))["statusCode"] == "BadNodeIdUnknown"
