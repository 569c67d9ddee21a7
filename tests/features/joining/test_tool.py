"""A tool is made safe step by step, even if its controller declines a step."""

from typing import Any, cast

import pytest

from edge.features.joining.lock import SharedTool, ToolLock
from edge.features.joining.methods import IjtMethods
from edge.features.joining.programs import JoiningPrograms
from edge.features.joining.state import ControllerState
from edge.features.joining.tool import JoiningTool, OpenRelease
from edge.foundation.errors import Refused
from edge.links.opcua import ClientSession, Node
from tests.equipment.contract import WORK
from tests.equipment.recording_station import RecordingStation

STOPPING = ("AbortJoiningProcess", "EnableAsset", "DeselectJoiningProcess", "ResetIdentifiers")


class Controller:
    """A controller that has some methods and declines some of them; `called` records the calls."""

    def __init__(self, offered: tuple[str, ...], declined: tuple[str, ...] = ()) -> None:
        self.called: list[str] = []
        self._offered = offered
        self.declined = declined

    def __contains__(self, name: object) -> bool:
        return name in self._offered

    async def call(self, name: str, *_: Any, output_count: int | None = None) -> list[Any]:
        self.called.append(name)
        if name in self.declined:
            raise Refused("device", f"{name}: no")
        return [[{"Name": "CommandID", "EntityId": "J1"}, "odd"]]

    async def call_step(self, name: str, *arguments: Any) -> None:
        await self.call(name, *arguments)


class Disabled:
    """A session with a server whose tool is disabled."""

    async def read(self, _: Node) -> bool:
        return False


def tool_of(controller: Controller, session: Disabled | None = None) -> JoiningTool:
    methods, enabled = cast("IjtMethods", controller), Node("i=1", "Enabled") if session else None
    shared = SharedTool(RecordingStation(), "opc.tcp://tool", (), ())
    lock = ToolLock(
        methods, "", cast("ClientSession", session), enabled, ControllerState(), shared, is_on=session is not None
    )
    return JoiningTool(methods, "", JoiningPrograms(methods, ""), lock, OpenRelease())


@pytest.mark.parametrize("declined", [(), STOPPING[:1], (STOPPING[0], *STOPPING[2:])])
async def test_every_safing_step_is_executed_despite_declined_ones(declined: tuple[str, ...]) -> None:
    controller = Controller(STOPPING, declined)
    await tool_of(controller).make_safe(WORK, is_running=True)
    assert controller.called == list(STOPPING)


async def test_idle_tool_is_not_aborted() -> None:
    controller = Controller(STOPPING)
    await tool_of(controller).make_safe(WORK, is_running=False)
    assert controller.called == list(STOPPING[1:])


@pytest.mark.parametrize(
    ("offered", "declined", "reason"),
    [
        (STOPPING, ("EnableAsset",), "the tool may still be enabled: EnableAsset: no"),
        (STOPPING[:1], STOPPING[:1], "the tool may still be enabled: AbortJoiningProcess: no"),
        (("SendIdentifiers",), (), "the controller has no method to abort a joining"),
    ],
)
async def test_tool_that_may_still_move_is_reported(
    offered: tuple[str, ...], declined: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(Refused, match=reason):
        await tool_of(Controller(offered, declined)).make_safe(WORK, is_running=True)


async def test_declined_disable_of_a_tool_that_is_disabled_is_confirmed() -> None:
    """A slow controller disables the tool without an answer in time: what counts is the tool."""
    tool = tool_of(Controller(STOPPING, ("EnableAsset",)), Disabled())
    await tool.make_safe(WORK, is_running=True)
    await tool.rest()


async def test_tool_of_an_unstarted_joining_is_made_safe_at_rest_until_confirmed() -> None:
    controller = Controller(STOPPING, ("EnableAsset",))
    tool = tool_of(controller)
    tool.make_safe_at_rest(WORK, is_running=False)
    for _ in range(2):
        with pytest.raises(Refused, match="may still be enabled"):
            await tool.rest()
    controller.declined = ()
    await tool.rest()
    await tool.rest()
    assert controller.called.count("EnableAsset") == 3


async def test_declined_identifiers_do_not_prevent_a_stop() -> None:
    tool = tool_of(Controller(("SendIdentifiers", "GetIdentifiers"), ("GetIdentifiers",)))
    assert await tool.occupant() is None


@pytest.mark.parametrize(
    ("offered", "pending"), [(("SendIdentifiers", "GetIdentifiers"), "J1"), (("GetIdentifiers",), None), ((), None)]
)
async def test_pending_command_is_read_if_the_controller_reports_it(
    offered: tuple[str, ...], pending: str | None
) -> None:
    assert await tool_of(Controller(offered)).pending_command() == pending


async def test_pending_command_is_found_among_all_identifiers_of_the_tool() -> None:
    """A controller may report more than it is asked for: the job order too."""

    class Talkative(Controller):
        async def call(self, name: str, *_: Any, output_count: int | None = None) -> list[Any]:
            return [[{"Name": "CommandID", "EntityId": "J1/R1/work/1"}, {"Name": "JobOrderID", "EntityId": "J1"}]]

    assert await tool_of(Talkative(("SendIdentifiers", "GetIdentifiers"))).pending_command() == "J1/R1/work/1"
