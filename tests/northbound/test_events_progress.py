"""Progress is published while it has a reader, merged into a few events per second."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from edge.foundation.task_group import background_task
from edge.links.mqtt import Message, MqttSession, to_event
from edge.model.instant import rfc3339
from edge.model.job_message import JobProgress, JobProgressV1, StepProgressV1
from edge.northbound.events import ProgressLimits, ProgressMode, ProgressPublisher, progress_event
from edge.northbound.topics import Topics
from edge.station.runs import Progress, Runs
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.northbound.calling import SCOPE, Station, opened_station, order
from tests.northbound.test_calls_faults import method


class FakeSession:
    """A session of which a test says whether the topic has a subscriber."""

    def __init__(self) -> None:
        self.sent: list[tuple[Message, int]] = []
        self.has_reader = True

    async def send(self, message: Message, *, qos: int = 1) -> bool:
        self.sent.append((message, qos))
        return qos == 0 or self.has_reader


class FakeClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def publisher(session: FakeSession, clock: Callable[[], float], mode: ProgressMode = "readers") -> ProgressPublisher:
    limits = ProgressLimits(interval_s=0.01)
    return ProgressPublisher(cast(MqttSession, session), "urn:edge", Topics("app", SCOPE), mode, limits, clock)


@pytest.fixture
async def progress(store: Store) -> Progress:
    """What a run did, as its listeners get it."""
    station = await opened_station(store)
    seen: list[Progress] = []
    station.runs.listeners.append(seen.append)
    await start(station, station.runs)
    return seen[0]


async def start(station: Station, runs: Runs) -> None:
    from edge.foundation.instant import now_ms
    from edge.northbound.calls import CallHandler, CallServices
    from edge.station.jobs import JobService

    service = JobService(station.store, runs, 1000, 60_000)
    calls = CallHandler("urn:edge", (SCOPE,), station.store, CallServices(service, station.settings), now_ms)
    async with station.at_work():
        await calls.answer(method("StoreAndStart", "1", order("J1")))
        async with asyncio.timeout(60):
            while not await runs.load("J1"):
                pass


async def test_progress_without_a_reader_is_published_once_a_minute(progress: Progress, wait_until: WaitUntil) -> None:
    session, clock = FakeSession(), FakeClock()
    session.has_reader = False
    ours = publisher(session, clock)
    async with background_task(ours.run(), "progress"):
        ours.watch(progress)
        await wait_until(lambda: len(session.sent) == 1)
        ours.watch(progress)
        clock.now += 59
        ours.watch(progress)
        clock.now += 2
        session.has_reader = True
        ours.watch(progress)
        await wait_until(lambda: len(session.sent) == 2)
        ours.watch(progress)
        await wait_until(lambda: len(session.sent) == 3)
    assert [qos for _, qos in session.sent] == [1, 1, 0]


async def test_progress_within_one_interval_is_one_event(progress: Progress, wait_until: WaitUntil) -> None:
    session = FakeSession()
    ours = publisher(session, FakeClock(), "always")
    for _ in range(50):
        ours.watch(progress)
    async with background_task(ours.run(), "progress"):
        await wait_until(lambda: session.sent)
    (sent,) = session.sent
    data: Any = to_event(sent[0]).data
    assert len(data["steps"]) == 50 * len(progress.steps)
    assert [step.step for step in progress.steps] == ["Wait"]


async def test_progress_can_be_switched_off(progress: Progress) -> None:
    session = FakeSession()
    ours = publisher(session, FakeClock(), "off")
    ours.watch(progress)
    async with background_task(ours.run(), "progress"):
        await asyncio.sleep(0)
    assert session.sent == []


async def test_progress_has_the_former_form_with_event_version_1(progress: Progress) -> None:
    now, former = progress_event("urn:edge", progress), progress_event("urn:edge", progress, 1)
    assert [event.type.rpartition(".")[2] for event in (now, former)] == ["v2", "v1"]
    assert isinstance(now.data, JobProgress)
    assert isinstance(former.data, JobProgressV1)
    assert (now.data.job_order_id, now.data.at) == ("J1", rfc3339(progress.at))
    steps = tuple(StepProgressV1(step.step, step.active) for step in now.data.steps)
    assert (former.data.job_id, former.data.at, former.data.steps) == ("J1", progress.at, steps)


async def test_progress_has_the_titles_that_the_recipe_has(progress: Progress) -> None:
    loaded = progress.loaded
    first, *rest = loaded.net.recipe.steps
    titles = {"en": "Fit the axle", "de": "Achse einbauen"}
    recipe = replace(loaded.net.recipe, steps=(replace(first, title=titles), *rest))
    titled = replace(progress, loaded=replace(loaded, net=replace(loaded.net, recipe=recipe)))
    steps = msgspec.json.decode(msgspec.json.encode(progress_event("urn:edge", titled).data))["steps"]
    assert steps == [{"step": first.name, "active": True, "title": titles}]
    former = msgspec.json.decode(msgspec.json.encode(progress_event("urn:edge", titled, 1).data))["steps"]
    assert former == [{"step": first.name, "active": True}]
