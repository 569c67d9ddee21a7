"""A gateway whose archive was switched off."""

import pytest

from edge.app.wiring import open_gateway
from edge.config import MqttSettings, RedisSettings, Settings
from edge.store import archive_backlog
from edge.store.client import Store
from tests.app.running import NO_OPCUA
from tests.features.imports import imported_with

pytestmark = pytest.mark.slow


async def test_gateway_without_an_archive_withdraws_at_its_start(redis: RedisSettings, store: Store) -> None:
    settings = Settings(redis=redis, mqtt=MqttSettings(url=""), opcua=NO_OPCUA)
    (scope,) = settings.gateway.scopes
    await store.commit(archive_backlog.announce(store.keys, scope, settings.gateway.name))
    assert await store.execute("EXISTS", store.keys.archive_gateway(scope))
    async with open_gateway(settings):
        assert not await store.execute("EXISTS", store.keys.archive_gateway(scope))


def test_gateway_without_an_archive_imports_nothing_else_of_it() -> None:
    module = "edge.features.archive.withdrawal"
    assert imported_with(module, "archive") == {module}
