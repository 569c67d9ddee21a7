"""A start whose answer was lost in a failover gets an unknown outcome, unless its answer comes meanwhile."""

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.equipment.mqtt import LostAnswers, open_equipment
from edge.foundation.task_group import background_task
from edge.links.mqtt import open_session
from edge.station.equipment import Begin, OutcomeUnknown
from tests.conftest import WaitUntil
from tests.equipment.contract import WORK
from tests.equipment.recording_station import RecordingStation

UNKNOWN = OutcomeUnknown(WORK.command_id, "its answer may have been lost in a failover of the store")


class _AfterFailover(RecordingStation):
    """Its begun marks are of a former generation."""

    async def begin(self, command_id: str) -> Begin:
        return Begin.LOST


async def test_start_without_answer_gets_an_unknown_outcome(wait_until: WaitUntil) -> None:
    station = RecordingStation()
    lost = LostAnswers("press", station, wait_s=0.01)
    async with background_task(lost.run(), "lost answers"):
        lost.note(WORK.command_id)
        await wait_until(lambda: station.unknown)
    assert station.unknown == [UNKNOWN]


async def test_start_that_was_answered_meanwhile_keeps_its_outcome(wait_until: WaitUntil) -> None:
    station = RecordingStation()
    station.stopped_meanwhile.add("J2/R/work/1")
    lost = LostAnswers("press", station, wait_s=0.01)
    async with background_task(lost.run(), "lost answers"):
        lost.note("J2/R/work/1")
        lost.note(WORK.command_id)
        await wait_until(lambda: station.unknown)
    assert station.unknown == [UNKNOWN]


async def test_once_over_mqtt_ends_a_start_of_a_former_generation(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    settings = MqttEquipmentSettings(type_ids=(WORK.type_id,), topic_prefix=unique, repetition="once")
    station = _AfterFailover()
    async with open_session(mqtt, f"{unique}-edge") as edge:
        equipment = await open_equipment("press", settings, edge, station, ("station-1",), "/edge")
        equipment.lost_answers = LostAnswers("press", station, wait_s=0.01)
        async with background_task(equipment.keep_offering(), "offers"):
            await equipment.send(WORK)
            await wait_until(lambda: station.unknown)
    assert station.unknown == [UNKNOWN]
