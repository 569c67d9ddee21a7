"""A plant with a station page, and people who may use it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from edge.access.login import Users
from edge.features.page.services import WebServices
from edge.model.job_state import Cause
from edge.store.client import Store
from tests.cli.conftest import edge, settings_file  # noqa: F401 - fixtures of commands on the same store
from tests.features.page.serving import ATTACK, Browser, services_of, serving, write_people
from tests.station.plant import LINEAR, PHOTO, SUPERVISED, TIGHTEN, Clock, FakeEquipment, Plant, order, until_true


@pytest.fixture
def tool() -> FakeEquipment:
    return FakeEquipment()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture
async def plant(store: Store, tool: FakeEquipment, clock: Clock) -> AsyncIterator[Plant]:
    """A station with a job that has not started, whose id is an attack, and a job that waits for its tool."""
    station = Plant(store, {TIGHTEN: tool, PHOTO: tool}, clock)
    await station.teach("linear", LINEAR)
    await station.teach("supervised", SUPERVISED)
    async with station.at_work():
        await station.order(Cause.STORE, order(ATTACK))
        await station.order(Cause.STORE_AND_START, order("J1", "supervised"))
        await until_true(lambda: tool.received() == ["a"])
        yield station


@pytest.fixture
def users(tmp_path: Path) -> Users:
    return write_people(tmp_path / "users")


@pytest.fixture
def services(plant: Plant, users: Users) -> WebServices:
    return services_of(plant, users)


@pytest_asyncio.fixture
async def browser(services: WebServices) -> AsyncIterator[Browser]:
    """A client of the page that has not logged in."""
    async with serving(services) as found:
        yield found
