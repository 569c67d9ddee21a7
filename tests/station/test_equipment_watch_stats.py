"""Messages of equipment are counted for it: answers, failures, refused messages."""

import pytest

from edge.model.job_state import Cause
from edge.station.equipment import EquipmentAnswer, EquipmentEvent
from edge.station.equipment_watch import EquipmentStats
from edge.store.client import Store
from edge.store.dead_letters import RefusedMessage
from tests.station.plant import LINEAR, NOW, PHOTO, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, order


@pytest.fixture
async def plant(store: Store) -> Plant:
    """A station with a job whose first command waits for its answer."""
    tool = FakeEquipment()
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, Clock())
    await plant.teach("linear", LINEAR)
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    return plant


async def waiting(plant: Plant) -> str:
    """Name the command that waits."""
    loaded = await plant.runs.get("J1")
    assert loaded
    (command,) = loaded.unanswered()
    return command.command_id


async def later(plant: Plant, milliseconds: int) -> None:
    assert isinstance(plant.runs.clock, Clock)
    plant.runs.clock.now += milliseconds


async def test_an_answer_is_counted_with_its_round_trip(plant: Plant) -> None:
    stats, command = plant.answers.stats, await waiting(plant)
    await later(plant, 1500)
    await plant.answers.answer(EquipmentAnswer(command, {"ok": True}))
    assert (stats.answered, stats.failed, stats.last_seen) == (1, 0, NOW + 1500)
    assert stats.round_trips.total == pytest.approx(1.5)


async def test_repeated_answer_updates_last_seen_and_is_not_counted(plant: Plant) -> None:
    stats, command = plant.answers.stats, await waiting(plant)
    await plant.answers.answer(EquipmentAnswer(command, {"ok": True}))
    await later(plant, 1000)
    await plant.answers.answer(EquipmentAnswer(command, {"ok": True}))
    assert (stats.answered, stats.ignored, stats.last_seen) == (1, 1, NOW + 1000)


async def test_answers_and_events_without_a_receiver_count_as_ignored(plant: Plant) -> None:
    command = await waiting(plant)
    for stranger in ("nonsense", command.replace("J1", "J9")):
        await plant.answers.answer(EquipmentAnswer(stranger))
    await plant.answers.event(EquipmentEvent("/tool", "1", "nobody-waits.v1", SCOPE))
    assert (plant.answers.stats.answered, plant.answers.stats.ignored) == (0, 3)


async def test_failure_is_counted_with_its_message(plant: Plant) -> None:
    await plant.answers.answer(EquipmentAnswer(await waiting(plant), error="the spindle is jammed"))
    stats = plant.answers.stats
    assert (stats.answered, stats.failed, stats.last_error) == (1, 1, "the spindle is jammed")


async def test_answer_to_a_run_not_in_the_cache_has_no_round_trip(plant: Plant) -> None:
    command = await waiting(plant)
    plant.runs.invalidate("J1")
    await later(plant, 1500)
    await plant.answers.answer(EquipmentAnswer(command, {"ok": True}))
    assert plant.answers.stats.answered == 1
    assert plant.answers.stats.round_trips.total == 0


@pytest.mark.parametrize(("error", "answers"), [(None, True), ("the job runs", True), ("no answer", False)])
async def test_stop_that_equipment_answered_updates_last_seen(
    plant: Plant, error: str | None, *, answers: bool
) -> None:
    await plant.answers.stopped(await waiting(plant), error, is_answer=answers)
    assert plant.answers.stats.last_seen == (NOW if answers else None)


async def test_event_or_refused_message_updates_last_seen(plant: Plant) -> None:
    stats = plant.answers.stats
    await plant.answers.event(EquipmentEvent("/tool", "1", "scan.v1", SCOPE))
    assert (stats.last_seen, stats.refused) == (NOW, 0)
    await later(plant, 1000)
    await plant.answers.record_refusal(RefusedMessage("topic", "", "", "unreadable", "no JSON", b"{"))
    assert (stats.last_seen, stats.refused, stats.last_error) == (NOW + 1000, 1, "no JSON")


def test_clock_set_back_produces_no_negative_round_trip() -> None:
    stats = EquipmentStats()
    stats.record_answer(NOW - 1000, NOW, None)
    assert stats.round_trips.total == 0


def test_results_are_counted_by_their_evaluation() -> None:
    stats = EquipmentStats()
    for data in ({"evaluation": "OK"}, {"evaluation": "NotOK"}, {"evaluation": "OK"}, {"torque": 85}, None):
        stats.record_result(data)
    assert (stats.ok, stats.not_ok) == (2, 1)
