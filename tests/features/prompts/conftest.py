"""A station with people, and the prompts of its recipes."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from edge.features.prompts.answering import PromptContext
from edge.features.prompts.equipment import Operator
from edge.model.isa95 import ReturnStatus
from edge.model.job_state import Cause
from edge.station.sender import Dispatch, Sender, routes_of
from edge.station.start import Starter
from edge.store.client import Store
from tests.features.prompts.recipes import CONFIRM, TYPES
from tests.station.plant import DEDUPE_MS, Clock, FakeEquipment, Plant, linear, order


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def equipment() -> dict[str, FakeEquipment]:
    return {}


@pytest_asyncio.fixture
async def plant(store: Store, clock: Clock) -> AsyncIterator[Plant]:
    """A station whose people take every prompt; its sender works when a test drives it."""
    station = Plant(store, {}, clock)
    people = Operator("people", station.answers, no_fault)
    station.dispatch = Dispatch(station.runs, routes_of([(people, TYPES)]))
    station.starter = Starter(store, station.runs, station.dispatch)
    station.sender = Sender(station.runs, station.dispatch)
    yield station


async def no_fault(_: object) -> None:
    """Find no fault in a prompt."""


@pytest.fixture
def context(plant: Plant) -> PromptContext:
    return PromptContext(plant.runs, TYPES, 60_000, DEDUPE_MS)


async def ask(plant: Plant, job_id: str = "J1", *actions: dict[str, object]) -> None:
    """Start a job whose recipe asks, by default with a confirmation."""
    await start(plant, job_id, linear(*(actions or (CONFIRM,))))


async def start(plant: Plant, job_id: str, recipe: dict[str, object]) -> None:
    """Start a job of a recipe."""
    await plant.teach(f"for {job_id}", recipe)
    answer = await plant.order(Cause.STORE_AND_START, order(job_id, f"for {job_id}"))
    assert answer.status is ReturnStatus.NO_ERROR
    await plant.drive()
