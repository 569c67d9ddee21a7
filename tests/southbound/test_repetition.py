"""A start may be repeated as the settings say, and waits for its begun mark."""

import pytest

from edge.config import EquipmentSettings
from edge.errors import Unavailable
from edge.southbound.repetition import begin_when_available, chosen_repetition
from edge.station.equipment import Begin, Repetition
from tests.southbound.contract import WORK, RecordingStation


@pytest.mark.parametrize(("setting", "chosen"), [("", Repetition.ONCE), ("repeatable", Repetition.REPEATABLE)])
def test_settings_choose_before_the_kind(setting: str, chosen: Repetition) -> None:
    settings = EquipmentSettings(kind="mqtt", type_ids=("work",), repetition=setting)  # type: ignore[arg-type]
    assert chosen_repetition(settings, Repetition.ONCE) is chosen


async def test_mark_waits_for_the_station() -> None:
    station = RecordingStation()
    station.failures = [Unavailable("the store is away")]
    assert await begin_when_available(station, WORK.command_id) is Begin.NEW
    assert await begin_when_available(station, WORK.command_id) is Begin.AGAIN
