"""The traffic of equipment reaches the present subscribers only."""

from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.model.equipment_traffic import TrafficKind, TrafficRecord
from edge.store import traffic_channel
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.store.servers import own_server


def happened(data: object) -> TrafficRecord:
    return TrafficRecord(at=1, gateway="edge", what=TrafficKind.HAPPENING, data=data)


async def test_listeners_are_counted_and_receive_published_records(store: Store) -> None:
    assert not await traffic_channel.publish(store, "wrench", traffic_channel.encode_record(happened("before")))
    async with traffic_channel.subscribe(store, "wrench") as traffic:
        assert await traffic_channel.listeners(store, ["wrench", "camera"]) == {"wrench": 1, "camera": 0}
        assert await traffic_channel.publish(
            store, "wrench", traffic_channel.encode_record(happened({"pressed": True}))
        )
        assert await anext(traffic) == happened({"pressed": True})


async def test_a_value_that_is_not_json_is_replaced_by_its_type(store: Store) -> None:
    nested: list[object] = []
    nested.append(nested)
    async with traffic_channel.subscribe(store, "wrench") as traffic:
        for odd in ({"path": Path("/dev/null")}, nested):
            await traffic_channel.publish(store, "wrench", traffic_channel.encode_record(happened(odd)))
        assert (await anext(traffic)).data == {"path": "/dev/null"}
        assert "unwritable" in (await anext(traffic)).data


async def test_record_of_another_version_is_refused_with_advice(store: Store) -> None:
    async with traffic_channel.subscribe(store, "wrench") as traffic:
        await traffic_channel.publish(store, "wrench", b'{"at":1,"gateway":"edge","what":"sung","data":null}')
        with pytest.raises(Unavailable, match="a gateway of another version") as refused:
            await anext(traffic)
    assert refused.value.advice == "Use the `edge` of that gateway."


async def test_a_lost_server_is_reported_to_the_listener(tmp_path: Path) -> None:
    async with (
        own_server(tmp_path) as server,
        open_store(RedisSettings(url=server.url), None) as store,
        traffic_channel.subscribe(store, "wrench") as traffic,
    ):
        await server.kill()
        with pytest.raises(Unavailable, match="Redis does not answer"):
            await anext(traffic)
