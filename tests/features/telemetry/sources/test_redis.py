"""Samples from a foreign Redis: the newest value of an interval is used; invalid and absent values are ignored."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import redis.asyncio as aioredis
from structlog.testing import capture_logs

from edge.features.telemetry.settings import RedisSourceSettings
from edge.features.telemetry.sources.redis import MAX_PAYLOAD, RedisSource
from edge.foundation.task_group import background_task
from edge.ports.sample_lines import Sample
from edge.store.other_redis import open_foreign
from tests.conftest import WaitUntil
from tests.equipment.samples import Sink
from tests.store.servers import own_server


class Foreign:
    """A foreign Redis whose texts a test sets."""

    def __init__(self, **texts: bytes | None) -> None:
        self.texts = texts

    async def read_texts(self, keys: tuple[str, ...], most: int) -> dict[str, bytes | None]:
        return {key: self.texts.get(key) for key in keys}

    @asynccontextmanager
    async def listen(self, patterns: tuple[str, ...]) -> AsyncIterator[AsyncIterator[tuple[str, bytes]]]:
        async def messages() -> AsyncIterator[tuple[str, bytes]]:
            for number in range(50):
                yield f"c:{number % 5}", str(number).encode()

        yield messages()


def settings_of(**keys: object) -> RedisSourceSettings:
    return RedisSourceSettings(kind="redis", url="unix:///none", interval=0.05, **keys)  # type: ignore[arg-type]


async def test_newest_message_of_each_channel_in_an_interval_is_sampled(wait_until: WaitUntil) -> None:
    sink = Sink()
    source = RedisSource("line", settings_of(patterns=("c:*",), tag="c{2}"), Foreign(), sink, lambda: 7, (60, 60))
    async with background_task(source.run(), "source"):
        await wait_until(lambda: len(sink.taken) == 5)
    assert sink.taken == [Sample(7, f"c{number}", 45 + number) for number in range(5)]


async def test_channels_beyond_the_limit_are_counted(wait_until: WaitUntil) -> None:
    sink = Sink()
    source = RedisSource("line", settings_of(patterns=("c:*",)), Foreign(), sink, lambda: 7, (60, 60), 3)
    async with background_task(source.run(), "source"):
        await wait_until(lambda: len(sink.taken) == 3)
    assert (source.dropped, sink.refused) == (20, {"line": 20})


async def test_keys_with_unreadable_values_are_logged_once(wait_until: WaitUntil) -> None:
    sink = Sink()
    foreign = Foreign(
        temp=msgspec.msgpack.encode({"v": 81.5}),
        text=b"5.03%",
        big=b"x" * (MAX_PAYLOAD + 1),
        bomb=b"\x91" * MAX_PAYLOAD,
        noise=b"\xff\xfe\x00",
        absent=None,
    )
    settings = settings_of(keys=("absent", "bomb", "big", "noise", "text", "temp"), pointer="/v")
    source = RedisSource("line", settings, foreign, sink, lambda: 7)
    with capture_logs() as logs:
        async with background_task(source.run(), "source"):
            await wait_until(lambda: len(sink.taken) == 3)
    assert sink.taken == [Sample(7, "temp", 81.5)] * 3
    dropped = [entry["name"] for entry in logs if entry["event"] == "sample dropped"]
    assert sorted(dropped) == ["absent", "big", "bomb", "noise", "text"]


async def test_lost_server_is_read_again_after_its_return(tmp_path: Path, wait_until: WaitUntil) -> None:
    sink = Sink()
    async with own_server(tmp_path) as server:
        owner = aioredis.Redis(unix_socket_path=server.url[7:])
        await owner.set("k", b"10")
        settings = settings_of(keys=("k",), patterns=("c:*",))
        with capture_logs() as logs:
            async with (
                open_foreign(server.url) as foreign,
                background_task(RedisSource("line", settings, foreign, sink, lambda: 7, (0.05, 0.1)).run(), "source"),
            ):
                await wait_until(lambda: Sample(7, "k", 10) in sink.taken)
                await server.kill()
                await wait_until(lambda: len([entry for entry in logs if "unavailable" in entry["event"]]) == 2)
                await server.start()
                await owner.set("k", b"20")
                await wait_until(lambda: Sample(7, "k", 20) in sink.taken)
                await wait_until(lambda: len([entry for entry in logs if "again" in entry["event"]]) == 2)
                await owner.publish("c:1", b"on")
                await wait_until(lambda: Sample(7, "c.1", "on") in sink.taken)
        await owner.aclose()
    assert len([entry for entry in logs if entry["log_level"] == "warning"]) == 2
