"""A line with equipment, MES and broker continues after its store has another primary."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from edge.config import MqttSettings
from edge.model.event_types import STATUS_EVENT_TYPE
from tests.app.running import NO_OPCUA, Gateway, edge_run, settings_of, written
from tests.conftest import WaitUntil
from tests.integration.plant import PUSHING, SCOPE, Plant, opened_plant, order
from tests.store.sentinel_line import Line, open_line

pytestmark = pytest.mark.slow
ENDED = ["Running", "Ended/Completed"]


@pytest_asyncio.fixture
async def plant(mqtt: MqttSettings, unique: str) -> AsyncIterator[Plant]:
    async with opened_plant(mqtt, unique) as plant:
        yield plant


@asynccontextmanager
async def gateway_on(line: Line, mqtt: MqttSettings, unique: str, directory: Path) -> AsyncIterator[Gateway]:
    """Run a gateway on a line until the end of the block."""
    file = written(settings_of(line.settings(unique), mqtt, unique, NO_OPCUA), directory)
    async with edge_run("--settings", file) as gateway:
        await gateway.until("ready")
        yield gateway
        await gateway.stop()


def count(gateway: Gateway, event: str) -> int:
    """Return how often the gateway has logged an event."""
    return sum(record["event"] == event for record in gateway.records())


async def test_ends_of_jobs_are_published_after_a_frozen_primary_thaws(
    plant: Plant, mqtt: MqttSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    """No position of the old stream is stored in the new one, and no blocked connection to the old primary is left."""
    async with open_line(tmp_path / "line") as line, gateway_on(line, mqtt, unique, tmp_path) as gateway:
        await plant.configure(PUSHING)
        await plant.mes.call(SCOPE, "StoreAndStart", order("J1"))
        await wait_until(lambda: plant.wrench.commands)
        line.nodes[0].signal(signal.SIGSTOP)
        await wait_until(lambda: count(gateway, "ready") == 2)
        line.nodes[0].signal(signal.SIGCONT)
        await plant.wrench.release()
        await wait_until(plant.heard.ended)
        for number in range(2, 5):
            await plant.mes.call(SCOPE, "StoreAndStart", order(f"J{number}"))
            await wait_until(lambda: plant.heard.ended(f"J{number}"))  # noqa: B023 - awaited in its turn
    assert all(plant.heard.states(f"J{number}") == ENDED for number in range(1, 5))
    ids = [event.id for event in plant.heard.events if event.type == STATUS_EVENT_TYPE]
    generations = {event_id.split("/")[1] for event_id in ids}
    assert len(generations) == 2
    assert {action: len(sent) for action, sent in plant.wrench.ids().items()} == {"position": 4, "tighten": 4}


async def test_line_continues_on_a_replica_without_append_only_file(
    plant: Plant, mqtt: MqttSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    """It says so: what a power cut takes is not written down."""
    async with (
        open_line(tmp_path / "line", replica="appendonly no\n") as line,
        gateway_on(line, mqtt, unique, tmp_path) as gateway,
    ):
        await plant.configure(PUSHING)
        await plant.mes.call(SCOPE, "StoreAndStart", order("J1"))
        await wait_until(lambda: plant.wrench.commands)
        await line.nodes[0].kill()
        warning = await gateway.until("store may lose decisions")
        assert "does not write down each change" in warning["reason"]
        await plant.wrench.release()
        await wait_until(plant.heard.ended)
    assert plant.heard.states() == ENDED


async def test_job_continues_after_the_primary_was_killed(
    plant: Plant, mqtt: MqttSettings, unique: str, tmp_path: Path, wait_until: WaitUntil
) -> None:
    async with open_line(tmp_path / "line") as line, gateway_on(line, mqtt, unique, tmp_path) as gateway:
        await plant.configure(PUSHING)
        await plant.mes.call(SCOPE, "StoreAndStart", order("J1"))
        await wait_until(lambda: plant.wrench.commands)
        await line.nodes[0].kill()
        await plant.wrench.release()
        async with asyncio.timeout(30):
            await wait_until(plant.heard.ended)
        assert count(gateway, "ready") == 2
    assert plant.heard.states() == ENDED
    assert {action: len(sent) for action, sent in plant.wrench.ids().items()} == {"position": 1, "tighten": 1}
