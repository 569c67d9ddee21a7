"""Requests sent to the tool for a command, and the refusals that fail it."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace
from structlog.testing import capture_logs

from edge.features.openprotocol.protocol.mids import Mid
from edge.features.openprotocol.protocol.session import open_openprotocol
from edge.features.openprotocol.simulated.controller import TighteningController, open_openprotocol_controller
from edge.features.openprotocol.tool import TighteningTool
from edge.foundation.errors import Refused
from tests.equipment.contract import WORK


@pytest_asyncio.fixture
async def parts() -> AsyncIterator[tuple[TighteningController, TighteningTool]]:
    async with (
        open_openprotocol_controller(delay=None) as controller,
        open_openprotocol("127.0.0.1", controller.server.port) as session,
    ):
        yield controller, TighteningTool(session, correlation="mark", locks=True)


Parts = tuple[TighteningController, TighteningTool]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"parameter_set": 3}, [Mid.DISABLE_TOOL, Mid.SELECT_PARAMETER_SET, Mid.IDENTIFIER]),
        ({"job": 2}, [Mid.DISABLE_TOOL, Mid.SELECT_JOB, Mid.IDENTIFIER]),
        ({}, [Mid.DISABLE_TOOL, Mid.IDENTIFIER]),
    ],
)
async def test_tool_is_disabled_before_it_is_prepared(
    parts: Parts, parameters: dict[str, Any], expected: list[Mid]
) -> None:
    controller, tool = parts
    controller.enable()
    await tool.prepare(replace(WORK, parameters=parameters))
    assert [mid_frame.mid for mid_frame in controller.server.received][1:] == expected
    assert (controller.enabled, controller.identifier) == (False, WORK.mark)


async def test_job_still_running_after_an_interruption_is_restarted(parts: Parts) -> None:
    controller, tool = parts
    controller.select_job(1)
    controller.job_runs, controller.batch_counter = True, 2
    await tool.prepare(replace(WORK, parameters={"job": 1}))
    assert Mid.RESTART_JOB in [mid_frame.mid for mid_frame in controller.server.received]
    assert (controller.job, controller.job_runs, controller.batch_counter) == (1, False, 0)


async def test_alarm_is_acknowledged_if_the_controller_supports_it(parts: Parts) -> None:
    controller, tool = parts
    controller.break_down()
    await tool.acknowledge_alarm()
    assert not controller.alarm
    controller.server.missing = {Mid.ACKNOWLEDGE_ALARM, Mid.TOOL}
    await tool.acknowledge_alarm()
    assert await tool.read() == ""


async def test_job_that_is_not_running_needs_no_abort(parts: Parts) -> None:
    controller, tool = parts
    controller.enable()
    await tool.make_safe(replace(WORK, parameters={"job": 1}))
    assert not controller.enabled


async def test_declined_lock_is_logged_or_refused(parts: Parts) -> None:
    controller, tool = parts
    controller.server.missing = {Mid.DISABLE_TOOL}
    with capture_logs() as logs:
        await tool.release()
    assert [entry["event"] for entry in logs] == ["tool not disabled after its command"]
    with pytest.raises(Refused, match="may still be enabled"):
        await tool.make_safe(WORK)


async def test_tool_whose_disable_is_declined_still_counts_as_enabled(parts: Parts) -> None:
    controller, tool = parts
    await tool.enable()
    controller.server.missing = {Mid.DISABLE_TOOL}
    await tool.release()
    assert tool.is_enabled


async def test_declined_abort_of_a_job_without_the_lock_is_not_a_stop(parts: Parts) -> None:
    controller, _ = parts
    controller.server.missing = {Mid.ABORT_JOB}
    tool = TighteningTool(parts[1]._session, correlation="mark", locks=False)  # noqa: SLF001
    with pytest.raises(Refused, match="the job may still run: MID 0127 declined"):
        await tool.make_safe(replace(WORK, parameters={"job": 1}))


async def test_clock_is_set_when_it_differs(parts: Parts) -> None:
    controller, tool = parts
    now = controller.time
    controller.clock_offset = timedelta(hours=1)
    await tool.set_clock(now)
    assert abs(controller.time - now) < timedelta(minutes=1)
    controller.server.missing = {Mid.TIME}
    with capture_logs() as logs:
        await tool.set_clock(now)
    assert [entry["event"] for entry in logs] == ["optional message not accepted", "controller clock not set"]
