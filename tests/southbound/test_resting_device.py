"""Devices rest while no command needs them, if they can."""

from structlog.testing import capture_logs

from edge.errors import Refused
from edge.southbound.resting_device import let_rest


class Tool:
    """A tool that records its calls and can decline a rest; `at_work` are the next answers of the station."""

    def __init__(self, *at_work: bool) -> None:
        self.asked: list[str] = []
        self.declines = False
        self._at_work = [*at_work]

    async def is_at_work(self) -> bool:
        return self._at_work.pop(0) if self._at_work else False

    async def rest(self) -> None:
        self.asked.append("rest")
        if self.declines:
            raise Refused("device", "EnableAsset: no")

    async def wake(self) -> None:
        self.asked.append("wake")


async def test_device_without_rest_support_is_skipped() -> None:
    tool = Tool()
    await let_rest("wrench", tool, tool.is_at_work)
    await let_rest("camera", object(), tool.is_at_work)
    assert tool.asked == ["rest"]


async def test_device_at_work_for_another_gateway_does_not_rest() -> None:
    tool = Tool(True)
    await let_rest("wrench", tool, tool.is_at_work)
    assert tool.asked == []


async def test_device_used_by_another_gateway_during_the_rest_is_woken() -> None:
    tool = Tool(False, True, True)
    await let_rest("wrench", tool, tool.is_at_work)
    assert tool.asked == ["rest", "wake"]


async def test_device_woken_for_an_ended_command_rests_again() -> None:
    tool = Tool(False, True, False, False)
    await let_rest("wrench", tool, tool.is_at_work)
    assert tool.asked == ["rest", "wake", "rest"]


async def test_a_declined_rest_is_logged() -> None:
    tool = Tool()
    tool.declines = True
    with capture_logs() as logs:
        await let_rest("wrench", tool, tool.is_at_work)
    assert [(each["event"], each["reason"]) for each in logs] == [("tool not disabled", "EnableAsset: no")]
