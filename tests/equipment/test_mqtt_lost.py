"""A start whose answer was lost in a failover gets an unknown outcome, unless its answer comes meanwhile."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.equipment.mqtt import LostAnswers, MqttEquipment, open_equipment
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.links.mqtt import open_session
from edge.station.equipment import Begin, OutcomeUnknown
from tests.conftest import WaitUntil
from tests.equipment.contract import WORK
from tests.equipment.recording_station import RecordingStation

UNKNOWN = OutcomeUnknown(WORK.command_id, "its answer may have been lost in a failover of the store")


AGAIN = OutcomeUnknown(WORK.command_id, "it may have been sent before, and no answer has come")


class _AfterMark(RecordingStation):
    """The start has a begun mark of before."""

    def __init__(self, mark: Begin) -> None:
        super().__init__()
        self.mark = mark

    async def begin(self, command_id: str) -> Begin:
        return self.mark


async def test_start_without_answer_gets_an_unknown_outcome(wait_until: WaitUntil) -> None:
    station = RecordingStation()
    lost = LostAnswers("press", station, wait_s=0.01)
    async with background_task(lost.run(), "lost answers"):
        lost.note(WORK.command_id, Begin.LOST)
        await wait_until(lambda: station.unknown)
    assert station.unknown == [UNKNOWN]


async def test_start_that_was_answered_meanwhile_keeps_its_outcome(wait_until: WaitUntil) -> None:
    station = RecordingStation()
    station.stopped_meanwhile.add("J2/R/work/1")
    lost = LostAnswers("press", station, wait_s=0.01)
    async with background_task(lost.run(), "lost answers"):
        lost.note("J2/R/work/1", Begin.LOST)
        lost.note(WORK.command_id, Begin.LOST)
        await wait_until(lambda: station.unknown)
    assert station.unknown == [UNKNOWN]


@contextlib.asynccontextmanager
async def press(mqtt: MqttSettings, unique: str, station: RecordingStation) -> AsyncIterator[MqttEquipment]:
    settings = MqttEquipmentSettings(type_ids=(WORK.type_id,), topic_prefix=unique, repetition="once")
    async with open_session(mqtt, f"{unique}-edge") as edge:
        equipment = await open_equipment("press", settings, edge, station, ("station-1",), "/edge")
        equipment.lost_answers = LostAnswers("press", station, wait_s=0.01)
        async with background_task(equipment.keep_offering(), "offers"):
            yield equipment


@pytest.mark.parametrize(("mark", "unknown"), [(Begin.LOST, UNKNOWN), (Begin.AGAIN, AGAIN)], ids=str)
async def test_start_left_in_the_outbox_by_a_killed_gateway_ends(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil, mark: Begin, unknown: OutcomeUnknown
) -> None:
    """Killed between mark and start, without a failover: no answer came, and the job never ended."""
    station = _AfterMark(mark)
    async with press(mqtt, unique, station) as equipment:
        # It stays in the outbox, for this gateway may end before the outcome is stored, too.
        with pytest.raises(Unavailable):
            await equipment.send(WORK)
        await wait_until(lambda: station.unknown)
    assert station.unknown == [unknown]


async def test_start_that_was_sent_in_this_generation_is_waited_for(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    """It is gone from the outbox: a tool may work on it for minutes while its gateway is restarted."""
    station = _AfterMark(Begin.AGAIN)
    station.unanswered = [WORK]
    begins = []

    async def begin(command_id: str) -> Begin:
        begins.append(command_id)
        return Begin.AGAIN

    station.begin = begin  # type: ignore[method-assign]
    async with press(mqtt, unique, station) as equipment:
        await wait_until(lambda: begins)
        station.mark = Begin.LOST
        with pytest.raises(Unavailable):
            await equipment.send(replace(WORK, command_id="J2/R/work/1"))
        await wait_until(lambda: station.unknown)
    assert [unknown.command_id for unknown in station.unknown] == ["J2/R/work/1"]


async def test_start_without_a_subscriber_has_not_left(mqtt: MqttSettings, unique: str) -> None:
    """After a failover its outcome was unknown, although the broker had no subscriber for it."""
    station = RecordingStation()
    async with press(mqtt, unique, station) as equipment:
        await equipment.send(WORK)
    assert station.begun == []
