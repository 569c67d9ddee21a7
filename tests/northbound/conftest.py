"""An inbox on a real broker and a real store, and a MES that calls it."""

from collections.abc import AsyncIterator

import pytest

from edge.config import MqttSettings
from edge.store.client import Store
from tests.northbound.calling import Caller, Station, called, opened_inbox


@pytest.fixture
async def station(store: Store, mqtt: MqttSettings, unique: str) -> AsyncIterator[Station]:
    async with opened_inbox(store, mqtt, unique) as opened:
        yield opened


@pytest.fixture
async def mes(mqtt: MqttSettings, unique: str, station: Station) -> AsyncIterator[Caller]:  # noqa: ARG001 - is first
    async with called(mqtt, unique) as caller:
        yield caller
