"""The people at the station as equipment: always there, confirm stops, refuse what cannot be asked."""

import pytest

from edge.features.prompts.equipment import Operator, open_operator
from edge.features.prompts.settings import OperatorSettings
from edge.foundation.text import Text
from edge.sfc.signal import Phase
from edge.station.equipment import Command, EquipmentAnswer, Repetition
from tests.equipment.contract import RESET, SCOPES, TYPE_ID, WORK
from tests.equipment.recording_station import RecordingStation

SETTINGS = OperatorSettings(kind="operator", type_ids=(TYPE_ID,))


async def _no_fault(_: Command) -> Text | None:
    return None


@pytest.fixture
def station() -> RecordingStation:
    return RecordingStation()


async def test_people_are_connected_and_a_prompt_has_no_answer(station: RecordingStation) -> None:
    async with open_operator("people", SETTINGS, station, SCOPES, _no_fault) as people:
        assert (people.connected, people.problem, people.connection.connected) == (True, "", True)
        assert people.repetition_of(TYPE_ID) is Repetition.REPEATABLE
        await people.send(WORK)
        await people.send(WORK)
    assert station.answers == []


async def test_prompt_that_cannot_be_asked_fails_with_its_faults(station: RecordingStation) -> None:
    async def fault_of(_: Command) -> Text | None:
        return Text.of("the prompt cannot be asked: {faults}", faults="title: missing")

    await Operator("people", station, fault_of).send(WORK)
    (answer,) = station.answers
    assert isinstance(answer, EquipmentAnswer)
    assert str(answer.error) == "the prompt cannot be asked: title: missing"


async def test_reset_is_answered_and_a_stop_confirmed(station: RecordingStation) -> None:
    people = Operator("people", station, _no_fault)
    await people.reset(RESET)
    await people.stop(WORK)
    assert [answer.command_id for answer in station.answers] == [RESET.command_id]
    assert [command_id for command_id, *_ in station.stops] == [WORK.command_id]
    assert RESET.phase is Phase.RESET
