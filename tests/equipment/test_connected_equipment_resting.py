"""A device is released until it confirms its rest: at intervals, beyond its connection, and with its reason."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from edge.equipment.connected_equipment import DeviceRelease
from edge.foundation.errors import Refused, Unavailable
from edge.model.equipment_health import OpenSafing
from tests.virtual_time import run_virtual

NOW = 1_700_000_000_000


class Tool:
    """A tool that records its calls; `failures` are raised by its next calls, `at_work` is what the station says."""

    def __init__(self, *at_work: bool, failures: tuple[Exception, ...] = ()) -> None:
        self.calls: list[str] = []
        self._failures = [*failures]
        self._at_work = [*at_work]

    async def is_at_work(self) -> bool:
        return self._at_work.pop(0) if self._at_work else False

    async def rest(self) -> None:
        self._call("rest")

    async def wake(self) -> None:
        self._call("wake")

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self._failures:
            raise self._failures.pop(0)


class Mute(Tool):
    """A tool that does not answer its first rest."""

    async def rest(self) -> None:
        self._call("rest")
        if len(self.calls) == 1:
            await asyncio.Event().wait()


def opened(release: DeviceRelease) -> OpenSafing | None:
    """Return the open release as it is now."""
    return release.open


def declined(times: int) -> tuple[Exception, ...]:
    return tuple(Refused("device", "EnableAsset: no") for _ in range(times))


@pytest_asyncio.fixture
async def release() -> AsyncIterator[DeviceRelease]:
    yield DeviceRelease("wrench", clock=lambda: NOW)


async def test_device_without_rest_support_is_skipped(release: DeviceRelease) -> None:
    tool = Tool()
    await release.attempt(object(), tool.is_at_work)
    assert (tool.calls, release.open) == ([], None)


async def test_device_at_work_for_another_gateway_does_not_rest(release: DeviceRelease) -> None:
    tool = Tool(True)
    await release.attempt(tool, tool.is_at_work)
    assert tool.calls == []


async def test_device_used_by_another_gateway_during_the_rest_is_woken(release: DeviceRelease) -> None:
    tool = Tool(False, True, True)
    await release.attempt(tool, tool.is_at_work)
    assert tool.calls == ["rest", "wake"]


async def test_device_woken_for_an_ended_command_rests_again(release: DeviceRelease) -> None:
    tool = Tool(False, True, False, False)
    await release.attempt(tool, tool.is_at_work)
    assert tool.calls == ["rest", "wake", "rest"]


async def test_declined_wake_is_repeated_for_the_other_gateway(release: DeviceRelease) -> None:
    class Sleepy(Tool):
        async def wake(self) -> None:
            self.calls.append("wake")
            if self.calls.count("wake") == 1:
                raise Refused("device", "busy")

    tool = Sleepy(False, True, True)
    await release.attempt(tool, tool.is_at_work)
    assert opened(release) is not None
    await release.attempt(tool, tool.is_at_work)
    assert (tool.calls, opened(release)) == (["rest", "wake", "wake"], None)


async def test_declined_release_is_open_with_its_reason_and_logged_once(release: DeviceRelease) -> None:
    tool = Tool(failures=declined(3))
    with capture_logs() as logs:
        for _ in range(3):
            await release.attempt(tool, tool.is_at_work)
    assert opened(release) == OpenSafing(what="release", since=NOW, tries=3, reason="EnableAsset: no")
    assert [(entry["event"], entry["reason"]) for entry in logs] == [("tool not disabled", "EnableAsset: no")]
    await release.attempt(tool, tool.is_at_work)
    assert (opened(release), release.wait_s) == (None, None)


def test_declined_release_is_tried_after_2_s_5_s_then_each_10_s() -> None:
    async def tries() -> list[float]:
        release, tool = DeviceRelease("wrench", clock=lambda: NOW), Tool(failures=declined(5))
        at: list[float] = []
        while not at or release.wait_s is not None:
            await asyncio.sleep(release.wait_s or 0.0)
            at.append(asyncio.get_running_loop().time())
            await release.attempt(tool, tool.is_at_work)
        return [value - at[0] for value in at]

    assert run_virtual(tries()) == pytest.approx([0, 2, 7, 17, 27, 37])


def test_unanswered_release_is_tried_again_on_the_same_connection() -> None:
    async def outcome() -> tuple[OpenSafing | None, OpenSafing | None]:
        release, tool = DeviceRelease("wrench", answer_s=10.0, clock=lambda: NOW), Mute()
        await release.attempt(tool, tool.is_at_work)
        unanswered = release.open
        await asyncio.sleep(release.wait_s or 0.0)
        await release.attempt(tool, tool.is_at_work)
        return unanswered, release.open

    unanswered, after = run_virtual(outcome())
    assert unanswered == OpenSafing(what="release", since=NOW, tries=1, reason="no answer within 10 s")
    assert after is None


async def test_release_cut_off_by_a_lost_connection_stays_open(release: DeviceRelease) -> None:
    tool = Tool(failures=(Unavailable("cable pulled"),))
    release.withdraw()
    with pytest.raises(Unavailable):
        await release.attempt(tool, tool.is_at_work)
    assert release.open is not None
    assert str(release.open.reason) == "cable pulled"
    release.reconnect()
    assert release.wait_s == 0.0


async def test_lost_connection_of_an_unused_tool_opens_no_release(release: DeviceRelease) -> None:
    tool = Tool(failures=(Unavailable("cable pulled"),))
    with pytest.raises(Unavailable):
        await release.attempt(tool, tool.is_at_work)
    assert release.open is None


async def test_command_that_needs_the_tool_withdraws_its_release(release: DeviceRelease) -> None:
    tool = Tool(failures=declined(1))
    await release.attempt(tool, tool.is_at_work)
    release.withdraw()
    assert (release.open, release.wait_s) == (None, None)
