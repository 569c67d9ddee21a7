"""A client on another stack (node-opcua) reads raw values, aggregates and values at instants."""

import asyncio
import time
from typing import Any

import pytest

from edge.links.background_task import background_task
from tests.uaserver.history_client import START, TAG, HistoryClient, instant, values
from tests.uaserver.other_stack import Faulted, node

HOLD_S = 0.050


async def test_raw_values_are_read_backwards_with_bounds_and_none_outside(history: HistoryClient) -> None:
    assert values(await history.raw(START + 3000, START)) == [3, 2, 1]
    bounded = await history.raw(START + 1500, START + 3000, bounds=True)
    assert values(bounded) == [1, 2]
    assert (await history.raw(START - 9000, START - 5000))["statusCode"] == "GoodNoData"
    assert values(await history.raw(START + 2000, START + 2000)) == [2]


async def test_10000_raw_values_are_read_within_a_second(history: HistoryClient) -> None:
    took = []
    for _ in range(3):
        started = time.process_time()
        found = await history.raw(START, START + 100_000_000)
        took.append(time.process_time() - started)
        assert len(values(found)) == 10_000
        assert found["continuationPoint"]
    # Processor time of the server: other programs use the same processors.
    assert min(took) <= 1.0, took


async def test_history_of_a_year_at_once_holds_the_loop_50_ms_at_most(history: HistoryClient) -> None:
    held: list[float] = []

    async def tick() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            held.append(time.thread_time() - before)

    year_ms = 365 * 86_400_000
    details = {
        "startTime": instant(START - year_ms // 2),
        "endTime": instant(START + year_ms // 2),
        "processingInterval": 86_400_000,
        "aggregateType": [node("i=2343")] * 3,
        "aggregateConfiguration": {"$": "AggregateConfiguration", "useServerCapabilitiesDefaults": True},
    }
    async with background_task(tick(), "measure"):
        answer = await history.send("ReadProcessedDetails", details, [{"nodeId": node(TAG)}] * 3)
        raw = await history.raw(START - year_ms, START + year_ms)
    assert [each["statusCode"] for each in answer["results"]] == ["Good"] * 3
    assert len(values(raw)) == 10_000
    slow = [each for each in held if each > HOLD_S]
    # Other programs slow the shared processor: a few passes may take longer, each by less than half.
    assert len(slow) <= len(held) // 100, slow
    assert max(held) < 1.5 * HOLD_S, slow


async def test_aggregates_are_those_of_their_intervals(history: HistoryClient) -> None:
    expected = {
        "i=2342": [4.5, 14.5],
        "i=2343": [4.5, 14.5],
        "i=2346": [0, 10],
        "i=2347": [9, 19],
        "i=2352": [10, 10],
    }
    details: dict[str, Any] = {}
    for aggregate, of_intervals in expected.items():
        details = {
            "startTime": instant(START),
            "endTime": instant(START + 20_000),
            "processingInterval": 10_000,
            "aggregateType": [node(aggregate)],
            "aggregateConfiguration": {"$": "AggregateConfiguration", "useServerCapabilitiesDefaults": True},
        }
        result = await history.read("ReadProcessedDetails", details)
        assert (result["statusCode"], values(result)) == ("Good", of_intervals), aggregate
    details["aggregateType"] = [node("i=11285")]
    assert (await history.read("ReadProcessedDetails", details))["statusCode"] == "BadAggregateNotSupported"
    with pytest.raises(Faulted, match="BadAggregateListMismatch"):
        await history.read("ReadProcessedDetails", details | {"aggregateType": []})


async def test_values_at_instants_are_those_that_hold_then(history: HistoryClient) -> None:
    times = [instant(START + 2000), instant(START + 2500), instant(START - 1)]
    result = await history.read("ReadAtTimeDetails", {"reqTimes": times, "useSimpleBounds": True})
    read = result["historyData"]["dataValues"]
    assert [each["value"] and each["value"]["value"] for each in read][:2] == [2, 2]
    assert read[2]["statusCode"] == "BadNoData"
