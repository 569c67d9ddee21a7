"""A client on another stack (node-opcua) that reads history, and a server with the history of one tag."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from edge.features.telemetry.opcua.tag_history import TagHistory
from edge.ports.batch import encode_line
from edge.ports.sample_lines import Quality, Sample
from edge.store import stream_of_samples as tags
from edge.store.client import Store
from edge.uaserver.namespaces import Namespace
from tests.conftest import WaitUntil
from tests.features.telemetry.history.written import append_samples
from tests.features.telemetry.opcua.alarm_plant import alarm_server
from tests.uaserver.other_stack import OtherStack, node, other_stack

START = 1_790_000_000_000
TAG = f"ns={int(Namespace.ALARMS)};s=Tags/wrench.temp"
SAMPLES = 25_000


def instant(at: int) -> dict[str, Any]:
    return {"$": "Date", "at": at}


class HistoryClient:
    """Reads history over one session."""

    def __init__(self, other: OtherStack) -> None:
        self.other = other

    async def read(self, kind: str, details: dict[str, Any], node_id: str = TAG, **others: Any) -> dict[str, Any]:
        (result,) = (await self.send(kind, details, [{"nodeId": node(node_id)}], **others))["results"]
        found: dict[str, Any] = result
        return found

    async def send(self, kind: str, details: dict[str, Any], nodes: list[dict[str, Any]], **others: Any) -> Any:
        request = {
            "historyReadDetails": {"$": kind, **details},
            "timestampsToReturn": 0,
            "releaseContinuationPoints": False,
            "nodesToRead": nodes,
        }
        return await self.other.send("HistoryRead", **(request | others))

    async def raw(self, start: int, end: int, count: int = 0, **others: Any) -> dict[str, Any]:
        details = {
            "startTime": instant(start),
            "endTime": instant(end),
            "numValuesPerNode": count,
            "isReadModified": False,
            "returnBounds": others.pop("bounds", False),
        }
        return await self.read("ReadRawModifiedDetails", details, **others)


def values(result: dict[str, Any]) -> list[Any]:
    return [value["value"]["value"] for value in result["historyData"]["dataValues"]]


@pytest_asyncio.fixture
async def history(store: Store, tmp_path: Path, wait_until: WaitUntil) -> AsyncIterator[HistoryClient]:
    """A client of a server with the history of one tag: a value each second."""
    samples = [Sample(START + number * 1000, "wrench.temp", float(number)) for number in range(SAMPLES)]
    for first in range(0, SAMPLES, 10_000):
        append_samples(tmp_path, samples[first : first + 10_000], 1 << 30)
    append_samples(tmp_path, [Sample(START, "other", True), Sample(START + 5, "other", "text", Quality.BAD)], 1 << 30)
    last = {"wrench.temp": encode_line(samples[-1]), "other": encode_line(Sample(START, "other", True))}
    await store.commit(tags.save_last(store.keys, last))
    async with alarm_server(store, history=TagHistory(tmp_path)) as server, other_stack(server.endpoint) as other:
        client = HistoryClient(other)
        nodes = server.alarms.tags
        await wait_until(lambda: nodes.has("wrench.temp"))
        yield client
