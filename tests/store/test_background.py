"""Tests of the attempts that are repeated until the store is available."""

import asyncio

import pytest
import structlog
from structlog.testing import capture_logs

from edge.foundation.errors import Defect, RenewalError, SettingsError, Unavailable
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.store.background import Defects, Isolated, poll_store, renewal, restart_on_defect, retry_while_unavailable
from tests.conftest import WaitUntil


class Store:
    """A store that is away for the first attempts."""

    def __init__(self, away: int) -> None:
        self.away = away
        self.attempts = 0

    async def attempt(self) -> str:
        self.attempts += 1
        if self.attempts <= self.away:
            raise Unavailable("the store is away")
        return "done"

    async def poll(self) -> None:
        await self.attempt()


async def test_attempt_is_repeated_and_the_outage_is_logged_once() -> None:
    store = Store(away=3)
    with capture_logs() as logs:
        assert await retry_while_unavailable("send", store.attempt, 0.0) == "done"
    assert store.attempts == 4
    assert [(entry["event"], entry["task"]) for entry in logs] == [
        ("store unavailable, retrying", "send"),
        ("store available again", "send"),
    ]


async def test_attempt_that_succeeds_logs_nothing() -> None:
    with capture_logs() as logs:
        await retry_while_unavailable("send", Store(away=0).attempt, 0.0)
    assert logs == []


async def test_other_errors_are_not_repeated() -> None:
    async def fail() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        await retry_while_unavailable("send", fail, 0.0)


async def test_poll_continues_through_an_outage(wait_until: WaitUntil) -> None:
    store = Store(away=2)
    with capture_logs() as logs:
        async with background_task(poll_store(Defects(), "look", store.poll, 0.001), "poll"):
            await wait_until(lambda: store.attempts >= 5)
    assert [entry["event"] for entry in logs] == ["store unavailable, retrying", "store available again"]


async def test_defect_of_a_periodic_task_is_logged_once_and_stops_nothing(wait_until: WaitUntil) -> None:
    attempts, defects = 0, Defects()

    async def look() -> None:
        nonlocal attempts
        attempts += 1
        if attempts < 4:
            raise KeyError("unforeseen")

    with capture_logs() as logs:
        async with background_task(poll_store(defects, "look", look, 0.001), "poll"):
            await wait_until(lambda: attempts >= 6)
    assert [(entry["event"], entry["task"]) for entry in logs] == [
        ("background task failed, retrying", "look"),
        ("background task works again", "look"),
    ]
    assert defects.counts == {"look": 3}
    assert defects.failing == 0


async def test_service_that_fails_by_a_defect_is_restarted(wait_until: WaitUntil) -> None:
    defects, starts = Defects(), 0

    async def serve() -> None:
        nonlocal starts
        starts += 1
        if starts < 3:
            raise KeyError("unforeseen")
        await asyncio.Event().wait()

    async with background_task(restart_on_defect(defects, "rules", serve, (0.001, 0.05)), "rules"):
        await wait_until(lambda: starts == 3)
        assert list(map(str, defects.problems())) == ["background task fails: rules (KeyError)"]
        await wait_until(lambda: not defects.failing)
    assert defects.counts == {"rules": 2}


async def test_service_cancelled_from_within_is_a_defect_and_restarted(wait_until: WaitUntil) -> None:
    """A TaskGroup took it for a quiet end: the service was gone without a trace."""
    defects = Defects()
    awaited: list[asyncio.Future[None]] = []

    async def serve() -> None:
        awaited.append(asyncio.get_running_loop().create_future())
        await awaited[-1]

    async with background_task(restart_on_defect(defects, "rules", serve, (0.001, 60.0)), "rules"):
        await wait_until(lambda: len(awaited) == 1)
        awaited[0].cancel()
        await wait_until(lambda: len(awaited) == 2)
        assert list(map(str, defects.problems())) == ["background task fails: rules (CancelledWithinError)"]


async def test_attempt_cancelled_from_within_is_a_defect_and_repeated(wait_until: WaitUntil) -> None:
    defects, attempts = Defects(), 0

    async def look() -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            cancelled.cancel()
            await cancelled

    async with background_task(poll_store(defects, "look", look, 0.001), "poll"):
        await wait_until(lambda: attempts >= 3)
    assert defects.counts == {"look": 1}


async def test_service_with_a_failing_task_inside_is_restarted(wait_until: WaitUntil) -> None:
    defects, starts = Defects(), 0

    async def fail() -> None:
        raise KeyError("unforeseen")

    async def serve() -> None:
        nonlocal starts
        starts += 1
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())

    async with background_task(restart_on_defect(defects, "rules", serve, (0.001, 0.002)), "rules"):
        await wait_until(lambda: starts >= 3 and defects.failing == 1)


async def test_cancelled_service_whose_work_fails_meanwhile_is_not_restarted() -> None:
    """A task group of Python 3.11 raises the failure and forgets the cancellation: the gateway did not stop."""
    begun, starts = asyncio.Event(), 0

    async def fail_at_its_end() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise KeyError("unforeseen")

    async def serve() -> None:
        nonlocal starts
        starts += 1
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail_at_its_end())

    running = asyncio.create_task(restart_on_defect(Defects(), "rules", serve, (0.001, 0.002)))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 10)
    assert starts == 1


async def test_error_with_advice_ends_a_service_that_is_restarted() -> None:
    async def serve() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(refuse())

    async def refuse() -> None:
        raise SettingsError(["two gateways have this name"])

    with pytest.raises(SettingsError):
        await restart_on_defect(Defects(), "component", serve, (0.001, 0.002))


async def test_command_refused_by_redis_restarts_the_service(wait_until: WaitUntil) -> None:
    """A key of another type, as of a foreign program, ended the gateway, again after each start."""
    defects, attempts = Defects(), 0

    async def work() -> None:
        nonlocal attempts
        attempts += 1
        raise Defect("Redis refuses a command of ours: WRONGTYPE")

    async with background_task(restart_on_defect(defects, "samples", work, (0.001, 60.0)), "samples"):
        await wait_until(lambda: attempts >= 3)
        assert list(map(str, defects.problems())) == ["background task fails: samples (Defect)"]
    attempts = 0
    async with background_task(poll_store(defects, "look", work, 0.001), "look"):
        await wait_until(lambda: attempts >= 3)


@pytest.mark.parametrize("error", [KeyError("unforeseen"), Defect("Redis refuses a command of ours: WRONGTYPE")])
async def test_defect_of_a_renewal_ends_its_task(error: Exception) -> None:
    async def renew() -> None:
        with renewal(Text("the lock of job 1")):
            raise error

    with pytest.raises(RenewalError, match="the lock of job 1 cannot be renewed"):
        await poll_store(Defects(), "lock", renew, 0.001)


async def test_settings_error_ends_a_periodic_task() -> None:
    async def look() -> None:
        raise SettingsError(["two gateways have this name"])

    with pytest.raises(SettingsError):
        await poll_store(Defects(), "look", look, 0.001)


def test_task_that_keeps_failing_is_logged_once_and_counted_each_time() -> None:
    defects = Defects()
    with capture_logs() as logs:
        for _ in range(3):
            defects.record("rules", KeyError("unforeseen"))
        defects.record("safing", ValueError("wrong"))
        assert list(map(str, defects.problems())) == ["background task fails: rules (KeyError), safing (ValueError)"]
        assert defects.failing == 2
        defects.end("rules")
        defects.end("rules")
    assert [(log["event"], log["task"]) for log in logs] == [
        ("background task failed, retrying", "rules"),
        ("background task failed, retrying", "safing"),
        ("background task works again", "rules"),
    ]
    assert defects.counts == {"rules": 3, "safing": 1}


def test_gateway_without_defects_has_no_problem() -> None:
    defects = Defects()
    defects.end("rules")
    assert (list(defects.problems()), defects.failing) == ([], 0)


LOGGER = structlog.get_logger(__name__)


def test_a_defect_is_logged_with_its_item_and_ends_the_block() -> None:
    done: list[str] = []
    with capture_logs() as logs:
        for item in ("a", "b"):
            with Isolated(LOGGER, "item unreadable", item=item):
                if item == "a":
                    raise KeyError(item)
                done.append(item)
    assert done == ["b"]
    assert [(entry["event"], entry["item"], repr(entry["exc_info"])) for entry in logs] == [
        ("item unreadable", "a", "KeyError('a')")
    ]


@pytest.mark.parametrize("error", [Unavailable("the store is gone"), asyncio.CancelledError()])
def test_outage_and_cancellation_are_not_isolated(error: BaseException) -> None:
    with capture_logs() as logs, pytest.raises(type(error)), Isolated(LOGGER, "item unreadable"):
        raise error
    assert logs == []
