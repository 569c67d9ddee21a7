"""Devices rest while no command needs them, if they can."""

from structlog.testing import capture_logs

from edge.errors import Refused
from edge.southbound.resting_device import let_rest


class Tool:
    """A tool that counts its rests and can decline one."""

    def __init__(self) -> None:
        self.rests = 0
        self.declines = False

    async def rest(self) -> None:
        self.rests += 1
        if self.declines:
            raise Refused("device", "EnableAsset: no")


async def test_only_devices_that_can_rest_do_so() -> None:
    tool = Tool()
    await let_rest("wrench", tool)
    await let_rest("camera", object())
    assert tool.rests == 1


async def test_a_declined_rest_is_logged() -> None:
    tool = Tool()
    tool.declines = True
    with capture_logs() as logs:
        await let_rest("wrench", tool)
    assert [(each["event"], each["reason"]) for each in logs] == [("tool not disabled", "EnableAsset: no")]
