"""Joinings that their command does not take are reported, also when the controller or the connection fails then."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from edge.equipment.remembered_text import RememberedText
from edge.features.joining.collector import LAST_NUMBER, LAST_STARTED, JoiningCollector
from edge.features.joining.late import LateJoinings
from edge.features.joining.methods import IjtMethods
from edge.features.joining.programs import JoiningPrograms
from edge.features.joining.state import ControllerState
from edge.foundation.errors import Refused, Unavailable
from tests.equipment.contract import WORK
from tests.equipment.recording_station import RecordingStation
from tests.features.joining.test_collector import add_nothing, numbered, reporter, use_nothing

BATCH = replace(WORK, parameters={**WORK.parameters, "classification": "batch"})
_SINGLE, _BATCH = 1, 3


class Acknowledging:
    """A controller that acknowledges results; it fails to do so with `failure`."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.acknowledged: list[str] = []

    def __contains__(self, name: object) -> bool:
        return name == "AcknowledgeResults"

    async def call_result_method(self, _name: str, result_ids: list[str]) -> list[Any]:
        if self.failure:
            raise self.failure
        self.acknowledged += result_ids
        return []


def connected(controller: Acknowledging, state: ControllerState, station: RecordingStation) -> JoiningCollector:
    """Return the collector of a new connection."""
    methods, late = cast("IjtMethods", controller), reporter(station)
    return JoiningCollector(
        methods,
        state,
        late,
        RememberedText(station, "wrench", LAST_NUMBER),
        RememberedText(station, "wrench", LAST_STARTED),
        acknowledge=True,
        programs=JoiningPrograms(methods, ""),
        late=LateJoinings(late, state.ledger, use_nothing, add_nothing),
    )


def late_of(station: RecordingStation) -> list[tuple[str, str | None]]:
    return [(result.key, result.command_id) for result in station.late_results]


async def test_second_result_is_reported_when_the_acknowledgement_is_declined() -> None:
    station, controller = RecordingStation(), Acknowledging()
    results = connected(controller, ControllerState(), station)
    for number in (1, 2):
        await results.handle_live(numbered(WORK.command_id, f"R{number}", number))
    controller.failure = Refused("device", "not supported")
    with pytest.raises(Refused):
        await results.settle(WORK)
    assert late_of(station) == [("R2", WORK.command_id)]


async def test_results_of_an_answered_command_are_settled_on_the_next_connection() -> None:
    """The connection was lost between its answer and the acknowledgement."""
    station, controller, state = RecordingStation(), Acknowledging(), ControllerState()
    results = connected(controller, state, station)
    for number in (1, 2):
        await results.handle_live(numbered(WORK.command_id, f"R{number}", number))
    station.stopped_meanwhile.add(WORK.command_id)
    station.stored_results.add("R1")
    await connected(controller, state, station).catch_up()
    assert (late_of(station), station.answers) == ([("R2", WORK.command_id)], [])
    assert controller.acknowledged == ["R1", "R2"]
    assert state.ledger.unsettled() == ()


async def test_bolts_of_a_batch_that_was_stopped_are_reported_once() -> None:
    station, controller = RecordingStation(), Acknowledging()
    results = connected(controller, ControllerState(), station)
    results.claim(BATCH)
    for number in (1, 2):
        await results.handle_live(numbered(WORK.command_id, f"R{number}", number, Classification=_SINGLE))
    await results.settle_left()
    assert late_of(station) == []
    station.stopped_meanwhile.add(WORK.command_id)
    await results.settle_left()
    await results.settle_left()
    assert late_of(station) == [("R1", WORK.command_id), ("R2", WORK.command_id)]
    assert controller.acknowledged == ["R1", "R2"]


async def test_result_that_came_before_the_stop_of_its_command_is_reported() -> None:
    """Its file was fetched when the time limit expired: the work was cancelled with the result in memory."""
    station, state = RecordingStation(), ControllerState()
    results = connected(Acknowledging(), state, station)
    await results.handle_live(numbered(WORK.command_id, "R1", 1))
    station.stopped_meanwhile.add(WORK.command_id)
    await results.settle_left()
    assert [answer.command_id for answer in station.answers] == [WORK.command_id]
    assert state.ledger.unsettled() == ()


async def test_bolts_that_an_answer_holds_are_not_late() -> None:
    station, state = RecordingStation(), ControllerState()
    results = connected(Acknowledging(), state, station)
    results.claim(BATCH)
    for number, kind in ((1, _SINGLE), (2, _SINGLE), (3, _BATCH)):
        await results.handle_live(numbered(WORK.command_id, f"R{number}", number, Classification=kind))
    station.stopped_meanwhile.add(WORK.command_id)
    station.stored_results |= {"R1", "R2", "R3"}
    await results.settle_left()
    assert (late_of(station), state.ledger.unsettled()) == ([], ())


async def test_results_stay_in_memory_while_the_store_is_unavailable() -> None:
    station, state = RecordingStation(), ControllerState()
    results = connected(Acknowledging(), state, station)
    results.claim(BATCH)
    await results.handle_live(numbered(WORK.command_id, "R1", 1, Classification=_SINGLE))
    station.stopped_meanwhile.add(WORK.command_id)
    station.failures.append(Unavailable("no store"))
    with pytest.raises(Unavailable):
        await results.settle_left()
    await results.settle_left()
    assert late_of(station) == [("R1", WORK.command_id)]


async def test_late_batch_leaves_out_the_joinings_that_are_late_themselves() -> None:
    """After a restart each joining came first, and was reported once more within the result of its batch."""
    station, state = RecordingStation(), ControllerState()
    station.stopped_meanwhile.add(WORK.command_id)
    results = connected(Acknowledging(), state, station)
    results.claim(BATCH)
    parts = [numbered(WORK.command_id, f"R{number}", number, Classification=_SINGLE) for number in (1, 2)]
    await results.handle_live(parts[0])
    station.stored_results.add("R1")
    await results.handle_live(numbered(WORK.command_id, "R3", 3, Classification=_BATCH) | {"ResultContent": parts})
    (batch,) = station.answers
    assert late_of(station) == [("R1", WORK.command_id)]
    assert [part["result_id"] for part in batch.data["results"].values()] == ["R2"]


async def test_stored_joinings_of_a_batch_are_not_late_after_a_restart() -> None:
    """The first one that came again ended the command, and each other one was a second result of it."""
    station, state, controller = RecordingStation(), ControllerState(), Acknowledging()
    station.stopped_meanwhile.add(WORK.command_id)
    station.stored_results |= {"R1", "R2", "R3"}
    results = connected(controller, state, station)
    for number in (1, 2, 3):
        await results.handle_requested(numbered(WORK.command_id, f"R{number}", number))
    assert (station.answers, late_of(station), state.ledger.unsettled()) == ([], [], ())
    assert controller.acknowledged == ["R1", "R2", "R3"]
