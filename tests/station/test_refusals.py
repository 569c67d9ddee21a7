"""A flood of refused messages is stored in part and counted completely."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Refused, Unavailable
from edge.station.refusals import UNKNOWN_AGE, RefusalRecorder, refuse_expired
from edge.store import refused
from edge.store.client import Store
from edge.store.opening import open_store
from edge.store.refused import RefusedMessage
from tests.store.servers import own_server


def message(way: str, number: int) -> RefusedMessage:
    return RefusedMessage(way, "", str(number), "unreadable", "no JSON", b"{")


async def test_flood_of_refused_messages_is_stored_at_a_limited_rate(store: Store) -> None:
    seconds = 0.0
    recorder = RefusalRecorder(store, most=3, clock=lambda: seconds)
    for number in range(50):
        await recorder.record(message("flood", number))
    await recorder.record(message("other", 50))
    assert [item.event_id for item in await refused.newest(store, 10)] == ["50", "2", "1", "0"]
    assert await refused.count(store) == 51
    seconds = 11.0
    await recorder.record(message("flood", 51))
    assert (await refused.newest(store, 1))[0].event_id == "51"
    assert await refused.count(store) == 52


async def test_invented_topics_of_a_sender_share_a_limit(store: Store) -> None:
    recorder = RefusalRecorder(store, most=1, clock=lambda: 0.0)
    for number in range(150):
        await recorder.record(message(f"way {number}", number))
    assert len(await refused.newest(store, 1000)) == 101


async def test_refusals_of_an_outage_are_counted_after_it(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        seconds = 0.0
        recorder = RefusalRecorder(store, most=1, clock=lambda: seconds)
        await recorder.record(message("way", 1))
        await recorder.record(message("way", 2))
        await server.kill()
        seconds = 11.0
        with pytest.raises(Unavailable):
            await recorder.record(message("way", 3))
        await server.start()
        async with asyncio.timeout(30):
            while True:
                seconds += 11.0
                with contextlib.suppress(Unavailable):
                    await recorder.record(message("way", 3))
                    break
        assert await refused.count(store) == 3


@pytest.mark.parametrize("expires_at", [None, 1_000, 1_001])
def test_message_within_its_expiry_is_accepted(expires_at: int | None) -> None:
    refuse_expired(expires_at, 1_000)


@pytest.mark.parametrize(
    ("expires_at", "kind", "reason"), [(990, "expired", "10 ms ago"), (UNKNOWN_AGE, "retained", "may be of any age")]
)
def test_late_message_is_refused_with_the_reason(expires_at: int, kind: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason) as refusal:
        refuse_expired(expires_at, 1_000)
    assert refusal.value.kind == kind
