"""The OPC UA lists show the jobs of the store, also after an outage of the store."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from edge.config import RedisSettings
from edge.foundation.task_group import background_task
from edge.model.acceptance import Allowed
from edge.model.isa95 import IdCall, JobOrder, JobOrderAndState, JobResponse, JobStatusEvent, OrderCall, WorkMaster
from edge.model.job_state import Cause
from edge.station.job_call import JobCall
from edge.station.jobs import JobService
from edge.station.runs import Runs
from edge.station.settings import SettingsMethod, StationSettings
from edge.store.client import Store
from edge.store.jobs import load
from edge.store.open_store import open_store
from edge.store.query import StoreQuery
from edge.uaserver.job_feed import show_jobs
from edge.uaserver.server import UaServer
from tests.conftest import WaitUntil
from tests.store.servers import own_server

SCOPE = "station-1"


class RunningCharts(set[str]):
    """A fake of the charts: the set of jobs with a chart."""

    def hide(self, scope: str, job_order_id: str) -> None:
        self.discard(job_order_id)


class Screen:
    """A fake of the OPC UA server: it records the shown jobs and the published states."""

    def __init__(self, *, listens: bool = True) -> None:
        self.listens = listens
        self.jobs: dict[str, str] = {}
        self.responses: dict[str, str] = {}
        self.masters: list[str] = []
        self.published: list[str] = []
        self.charts = RunningCharts()
        self.sessions = 1
        self.is_watched = True
        self.shows = 0

    def shown(self, scope: str) -> Collection[str]:
        return self.jobs.keys()

    def show(self, scope: str, entry: JobOrderAndState, response: JobResponse | None) -> None:
        job_id = entry.job_order.job_order_id
        self.shows += 1
        self.jobs[job_id] = entry.state[0].state_text.text
        if response:
            self.responses[job_id] = response.job_state[0].state_text.text

    def hide(self, scope: str, job_order_id: str) -> None:
        self.jobs.pop(job_order_id, None)
        self.responses.pop(job_order_id, None)

    def work_masters(self, scope: str, work_masters: Sequence[WorkMaster]) -> None:
        self.masters = [master.id for master in work_masters]

    async def show_allowed(self, scope: str, allowed: Allowed) -> None:
        self.allowed = allowed

    def follow_jobs(
        self,
        refresh: Callable[[str, str], Awaitable[None]],
        prepare: Callable[[], Awaitable[None]],
        note_session: Callable[[], None],
    ) -> None:
        self.refresh, self.prepare, self.note_session = refresh, prepare, note_session

    def has_event_listeners(self, scope: str) -> bool:
        return self.listens

    async def publish_event(self, scope: str, status_event: JobStatusEvent, at: datetime) -> None:
        self.published.append(status_event.job_state[0].state_text.text)


class Desk:
    """A caller of job methods at a station that may run one Work Master."""

    def __init__(self, store: Store) -> None:
        self._jobs = JobService(store, Runs(store, lambda: 1_000_000, keep_ended_ms=60_000), 100, 60_000)
        self._settings = StationSettings(store)
        self._calls = 0

    async def configure(self) -> None:
        await self._settings.apply(SCOPE, "workmaster", SettingsMethod.PUT, {"ID": "WM-1"})

    async def call(self, method: Cause, job_id: str) -> None:
        self._calls += 1
        order = JobOrder(job_order_id=job_id, work_master_id=(WorkMaster(id="WM-1"),))
        arguments = OrderCall(job_order=order) if method is Cause.STORE else IdCall(job_order_id=job_id)
        answer = await self._jobs.call(JobCall(SCOPE, method, arguments, "/mes", str(self._calls)))
        assert answer.reasons == ()


def showing(store: Store, screen: Screen) -> AbstractAsyncContextManager[None]:
    return background_task(show_jobs(store, cast(UaServer, screen), (SCOPE,)), "feed")


async def test_feed_shows_stored_jobs_and_their_changes(store: Store, wait_until: WaitUntil) -> None:
    desk, screen = Desk(store), Screen()
    await desk.configure()
    await desk.call(Cause.STORE, "J1")
    async with showing(store, screen):
        await wait_until(lambda: screen.jobs == {"J1": "NotAllowedToStart"})
        await wait_until(lambda: screen.masters == ["WM-1"])
        await desk.call(Cause.STORE, "J2")
        await desk.call(Cause.ABORT, "J1")
        await wait_until(lambda: screen.jobs == {"J1": "Aborted", "J2": "NotAllowedToStart"})
        await wait_until(lambda: screen.responses == {"J1": "Aborted"})
        await desk.call(Cause.CLEAR, "J1")
        await wait_until(lambda: screen.jobs == {"J2": "NotAllowedToStart"})
    assert screen.responses == {}
    assert screen.published == ["Aborted"]


@pytest.mark.parametrize("sessions", [0, 1])
async def test_lists_cost_nothing_until_one_is_read(store: Store, wait_until: WaitUntil, sessions: int) -> None:
    desk, screen = Desk(store), Screen(listens=False)
    screen.sessions, screen.is_watched = sessions, False
    await desk.configure()
    await desk.call(Cause.STORE, "J1")
    async with background_task(show_jobs(store, cast(UaServer, screen), (SCOPE,), idle_s=3600), "feed"):
        await wait_until(lambda: screen.masters)
        for number in range(2, 9):
            await desk.call(Cause.STORE, f"J{number}")
            await desk.call(Cause.ABORT, f"J{number}")
            await screen.refresh(SCOPE, f"J{number}")
        assert screen.shows == 0
        await screen.prepare()
        aborted = dict.fromkeys([f"J{number}" for number in range(2, 9)], "Aborted")
        assert screen.jobs == {"J1": "NotAllowedToStart"} | aborted
        assert screen.shows == len(screen.jobs)
        screen.is_watched = True
        await desk.call(Cause.ABORT, "J1")
        await screen.prepare()
        await wait_until(lambda: screen.jobs["J1"] == "Aborted")


@pytest.mark.parametrize("loses", [False, True], ids=["keeping its data", "losing all of it"])
async def test_jobs_of_a_recovered_store_are_shown_as_stored(
    tmp_path_factory: pytest.TempPathFactory, wait_until: WaitUntil, *, loses: bool
) -> None:
    directory = tmp_path_factory.mktemp("v")
    screen = Screen()
    async with own_server(directory) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        desk = Desk(store)
        await desk.configure()
        await desk.call(Cause.STORE, "J1")
        async with showing(store, screen):
            await wait_until(lambda: screen.jobs)
            with capture_logs() as logs:
                await server.kill()
                if loses:
                    shutil.rmtree(directory / "appendonlydir")
                await server.start()
                await wait_until(lambda: "OPC UA lists" in {entry.get("task") for entry in logs})
            await desk.configure()
            await desk.call(Cause.STORE, "J2")
            expected = {"J2"} if loses else {"J1", "J2"}
            await wait_until(lambda: screen.jobs.keys() == expected)


async def test_unreadable_job_does_not_hide_other_jobs(store: Store, wait_until: WaitUntil) -> None:
    desk, screen = Desk(store), Screen()
    await desk.configure()
    await desk.call(Cause.STORE, "J1")
    await store.execute("HSET", store.keys.joborder("J1"), "order", "{")
    async with showing(store, screen):
        await desk.call(Cause.STORE, "J2")
        await wait_until(lambda: screen.jobs == {"J2": "NotAllowedToStart"})


async def test_foreign_response_value_does_not_end_a_job_before_its_start(store: Store, wait_until: WaitUntil) -> None:
    desk, screen = Desk(store), Screen()
    await desk.configure()
    await desk.call(Cause.STORE, "J1")
    job = await load(store, "J1")
    assert job
    await store.execute("HSET", store.keys.jobresponse(job.correlation_id), "response", "{")
    async with showing(store, screen):
        await wait_until(lambda: screen.jobs == {"J1": "NotAllowedToStart"})
        await desk.call(Cause.START, "J1")
        await wait_until(lambda: screen.published == ["AllowedToStart"])


async def test_run_ended_by_another_instance_is_hidden(store: Store, wait_until: WaitUntil) -> None:
    desk, screen = Desk(store), Screen()
    await desk.configure()
    for job_id in ("J1", "J2", "J3"):
        await desk.call(Cause.STORE, job_id)
    screen.charts.update(("J1", "J2", "J3"))
    async with showing(store, screen):
        await wait_until(lambda: screen.jobs.keys() == {"J1", "J2", "J3"})
        await desk.call(Cause.ABORT, "J1")
        await desk.call(Cause.CANCEL, "J2")
        await wait_until(lambda: screen.jobs == {"J1": "Aborted", "J3": "NotAllowedToStart"})
    assert screen.charts == {"J3"}


async def test_lists_follow_the_jobs_without_a_listener_of_events(store: Store, wait_until: WaitUntil) -> None:
    desk, screen = Desk(store), Screen(listens=False)
    await desk.configure()
    async with showing(store, screen):
        await wait_until(lambda: screen.masters == ["WM-1"])
        for number in range(5):
            await desk.call(Cause.STORE, f"J{number}")
            await desk.call(Cause.ABORT, f"J{number}")
        await wait_until(lambda: screen.jobs == {f"J{number}": "Aborted" for number in range(5)})
        assert screen.published == []


class SlowReply:
    """A store whose next reply about a job comes when the test says so; later replies overtake it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.key = ""
        self.was_read, self.may_return = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def fetch(self, query: StoreQuery[Any]) -> Any:
        value = await self._store.fetch(query)
        if query.commands[0][1] == self.key:
            self.key = ""
            self.was_read.set()
            await self.may_return.wait()
        return value


@pytest.mark.parametrize(
    ("method", "expected"), [(Cause.ABORT, {"J1": "Aborted"}), (Cause.CANCEL, {})], ids=["ended", "removed"]
)
async def test_a_slow_read_of_a_job_does_not_replace_a_newer_one(
    store: Store, wait_until: WaitUntil, method: Cause, expected: dict[str, str]
) -> None:
    desk, screen, slow = Desk(store), Screen(listens=False), SlowReply(store)
    screen.sessions = 0
    await desk.configure()
    await desk.call(Cause.STORE, "J1")
    async with background_task(show_jobs(cast(Store, slow), cast(UaServer, screen), (SCOPE,), idle_s=3600), "feed"):
        await wait_until(lambda: "J1" in screen.jobs)
        await desk.call(Cause.STORE, "J2")
        await wait_until(lambda: "J2" in screen.jobs)
        slow.key = store.keys.joborder("J1")
        first = asyncio.ensure_future(screen.refresh(SCOPE, "J1"))
        await slow.was_read.wait()
        await desk.call(method, "J1")
        newer = asyncio.ensure_future(screen.refresh(SCOPE, "J1"))
        # Time to overtake the first one, which it must not.
        await asyncio.wait((newer,), timeout=0.1)
        slow.may_return.set()
        await asyncio.gather(first, newer)
        assert screen.jobs == {"J2": "NotAllowedToStart"} | expected
