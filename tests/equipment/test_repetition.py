"""A start is repeated only if the settings allow it, and after its begun mark is stored."""

import pytest
from msgspec.structs import replace

from edge.config import EquipmentSettings
from edge.equipment.repetition import StartPolicy, chosen_repetition, count_repeated_start
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.task_group import background_task
from edge.station.equipment import Command, Repetition
from tests.conftest import WaitUntil
from tests.equipment.contract import WORK
from tests.equipment.recording_station import RecordingStation


@pytest.mark.parametrize(("setting", "chosen"), [("", Repetition.ONCE), ("repeatable", Repetition.REPEATABLE)])
def test_repetition_setting_overrides_the_kind(setting: str, chosen: Repetition) -> None:
    settings = EquipmentSettings(kind="mqtt", type_ids=("work",), repetition=setting)  # type: ignore[arg-type]
    assert chosen_repetition(settings, Repetition.ONCE) is chosen


async def test_begun_mark_is_retried_until_the_station_accepts_it() -> None:
    station = RecordingStation()
    station.failures = [Unavailable("the store is away")]
    assert await StartPolicy(station, Repetition.ONCE).claim(WORK)
    assert not await StartPolicy(station, Repetition.ONCE).claim(WORK)


async def test_begun_command_is_not_claimed() -> None:
    station = RecordingStation()
    assert not await StartPolicy(station, Repetition.ONCE).claim(replace(WORK, begun=True))
    assert station.begun == []


async def test_stopped_command_is_refused_before_its_start() -> None:
    station = RecordingStation()
    station.stopped_meanwhile.add(WORK.command_id)
    with pytest.raises(Refused, match="stopped before it was started"):
        await StartPolicy(station, Repetition.ONCE).claim(WORK)


@pytest.mark.parametrize(("command", "count"), [(WORK, 0), (replace(WORK, offered_again=True), 1)])
def test_repeated_start_is_counted(command: Command, count: int) -> None:
    station = RecordingStation()
    count_repeated_start(station, command)
    assert station.repeated_starts == count


async def test_start_that_waits_until_the_end_of_its_gateway_has_not_left(wait_until: WaitUntil) -> None:
    """The primary changed while it waited for a majority: its outcome was unknown, although nothing was sent."""
    station = RecordingStation()
    policy = StartPolicy(station, Repetition.ONCE)
    assert await policy.claim(WORK)
    station.unconfirmed = "no majority"
    async with background_task(policy.permit(WORK), "start"):
        await wait_until(lambda: station.refused_starts)
    assert await policy.claim(WORK)
