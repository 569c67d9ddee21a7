"""HistoryRead pages its answers, and refuses with the statuses of OPC 10000-11."""

import resource
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from edge.features.telemetry.opcua.history import CONTINUATION_POINTS
from edge.features.telemetry.opcua.tag_history import TagHistory
from edge.ports.batch import encode_line
from edge.ports.sample_lines import Sample
from edge.store import stream_of_samples as tags
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.features.telemetry.history.written import append_samples
from tests.features.telemetry.opcua.alarm_plant import alarm_server
from tests.features.telemetry.opcua.history_client import START, TAG, HistoryClient, instant, values
from tests.uaserver.other_stack import Faulted, node, other_stack

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


TEXTS = 10_000


@pytest_asyncio.fixture
async def texts(store: Store, tmp_path: Path, wait_until: WaitUntil) -> AsyncIterator[HistoryClient]:
    """A client of a server with the history of a tag with long texts."""
    samples = [Sample(START + number, "wrench.temp", f"{number:05}" + "x" * 4000) for number in range(TEXTS)]
    append_samples(tmp_path, samples, 1 << 30)
    await store.commit(tags.save_last(store.keys, {"wrench.temp": encode_line(samples[-1])}))
    async with alarm_server(store, history=TagHistory(tmp_path)) as server, other_stack(server.endpoint) as other:
        await wait_until(lambda: server.alarms.tags.has("wrench.temp"))
        yield HistoryClient(other)


def megabytes_in_use() -> float:
    """Return the memory of this process, in which the server runs."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)


async def test_continuation_points_of_texts_keep_no_samples(texts: HistoryClient) -> None:
    """Each kept 40 MB of samples that were read and did not fit: an observer filled the memory."""
    details = {"startTime": instant(START), "endTime": instant(START + TEXTS), "numValuesPerNode": 0}
    details |= {"isReadModified": False, "returnBounds": False}
    tag = [{"nodeId": node(TAG)}]
    await texts.send("ReadRawModifiedDetails", details, tag)
    before = megabytes_in_use()
    for _ in range(CONTINUATION_POINTS):
        (result,) = (await texts.send("ReadRawModifiedDetails", details, tag))["results"]
        assert result["continuationPoint"]
    assert megabytes_in_use() - before < 5 * CONTINUATION_POINTS
