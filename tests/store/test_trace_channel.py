"""The trace of equipment reaches the present subscribers only."""

from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.errors import Unavailable
from edge.model.equipment_trace import TraceKind, TraceRecord
from edge.store import trace_channel
from edge.store.client import Store
from edge.store.opening import open_store
from tests.store.servers import own_server


def happened(data: object) -> TraceRecord:
    return TraceRecord(at=1, gateway="edge", what=TraceKind.HAPPENING, data=data)


async def test_listeners_are_counted_and_receive_published_records(store: Store) -> None:
    assert not await trace_channel.publish(store, "wrench", trace_channel.encode_record(happened("before")))
    async with trace_channel.subscribe(store, "wrench") as traced:
        assert await trace_channel.listeners(store, ["wrench", "camera"]) == {"wrench": 1, "camera": 0}
        assert await trace_channel.publish(store, "wrench", trace_channel.encode_record(happened({"pressed": True})))
        assert await anext(traced) == happened({"pressed": True})


async def test_a_value_that_is_not_json_is_replaced_by_its_type(store: Store) -> None:
    nested: list[object] = []
    nested.append(nested)
    async with trace_channel.subscribe(store, "wrench") as traced:
        for odd in ({"path": Path("/dev/null")}, nested):
            await trace_channel.publish(store, "wrench", trace_channel.encode_record(happened(odd)))
        assert (await anext(traced)).data == {"path": "/dev/null"}
        assert "unwritable" in (await anext(traced)).data


async def test_record_of_another_version_is_refused_with_advice(store: Store) -> None:
    async with trace_channel.subscribe(store, "wrench") as traced:
        await trace_channel.publish(store, "wrench", b'{"at":1,"gateway":"edge","what":"sung","data":null}')
        with pytest.raises(Unavailable, match="a gateway of another version") as refused:
            await anext(traced)
    assert refused.value.advice == "Use the `edge` of that gateway."


async def test_a_lost_server_is_reported_to_the_listener(tmp_path: Path) -> None:
    async with (
        own_server(tmp_path) as server,
        open_store(RedisSettings(url=server.url), None) as store,
        trace_channel.subscribe(store, "wrench") as traced,
    ):
        await server.kill()
        with pytest.raises(Unavailable, match="Redis does not answer"):
            await anext(traced)
