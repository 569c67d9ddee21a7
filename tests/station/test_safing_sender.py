"""Tests of stops and resets that are sent until the equipment confirms them."""

import asyncio
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import Phase
from edge.station.equipment import Command, OutcomeUnknown
from edge.station.intervene import ReleaseRequest, release
from edge.station.safing_sender import SafingSender
from edge.store import equipment_memory, runs
from tests.station.plant import (
    DEDUPE_MS,
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    action,
    instance,
    linear,
    order,
    pull,
    send_due,
    until_true,
)
from tests.station.test_answers import started
from tests.store.losing_store import LosingStore, Loss

CLAMPED = linear(
    action("clamp", "one", qualifier="S"), pull("scan", "two"), action("clamp", "three", "open.v1", qualifier="R")
)


@pytest.fixture
def equipment(tool: FakeEquipment) -> dict[str, FakeEquipment]:
    return {TIGHTEN: tool, "open.v1": tool}


class Seconds:
    """A monotonic clock that a test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def sender_of(plant: Plant, tool: FakeEquipment, seconds: Seconds | None = None) -> SafingSender:
    routes = {TIGHTEN: tool, "open.v1": tool}
    return SafingSender(plant.runs, (SCOPE,), routes, plant.runs.clock, monotonic=seconds or Seconds())


async def abort_while_away(plant: Plant, tool: FakeEquipment) -> None:
    await plant.teach("clamped", CLAMPED)
    await started(plant, "J1", master="clamped")
    await plant.answer(tool.commands[0], {"closed": True})
    tool.reachable = False
    await plant.ask(Cause.ABORT, "J1")


async def test_reset_of_an_aborted_job_is_sent_when_its_tool_returns(plant: Plant, tool: FakeEquipment) -> None:
    await abort_while_away(plant, tool)
    sender = sender_of(plant, tool)
    await send_due(sender, tool)
    assert tool.received(Phase.RESET) == []
    tool.reachable = True
    await send_due(sender, tool)
    assert tool.received(Phase.RESET) == ["clamp"]
    await plant.answer(tool.commands[-1], {"open": True})
    assert await equipment_memory.load_all_safing(plant.store) == []


async def test_reset_survives_the_removal_of_its_job_and_a_restart(
    plant: Plant, tool: FakeEquipment, redis: RedisSettings, clock: Clock
) -> None:
    await abort_while_away(plant, tool)
    await plant.ask(Cause.CLEAR, "J1")
    tool.reachable = True
    clock.now += 1000
    async with instance(redis, {TIGHTEN: tool, "open.v1": tool}, clock) as restarted:
        await send_due(sender_of(restarted, tool), tool)
        assert tool.received(Phase.RESET) == ["clamp"]
        await restarted.answer(tool.commands[-1], {"open": True})
        assert await equipment_memory.load_all_safing(restarted.store) == []


async def test_stop_is_repeated_until_it_is_confirmed(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    seconds = Seconds()
    sender = sender_of(plant, tool, seconds)
    await sender.refresh()
    for _ in range(3):
        seconds.now += 10
        await send_due(sender, tool)
    assert tool.received(Phase.STOP) == ["a"] * 3
    await plant.answers.stopped(tool.commands[0].command_id, None)
    seconds.now += 10
    await send_due(sender, tool)
    assert tool.received(Phase.STOP) == ["a"] * 3
    assert sender.open_commands == ()


async def test_fresh_stop_is_left_to_the_outbox(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    sender = sender_of(plant, tool)
    plant.runs.clock.now += 1  # type: ignore[attr-defined]
    await plant.ask(Cause.ABORT, "J1")
    await send_due(sender, tool)
    assert tool.received(Phase.STOP) == []


async def test_declined_stop_is_kept_with_its_reason_and_reported_to_the_job(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    await plant.answers.stopped(tool.commands[0].command_id, "the tool is locked")
    (safing_command,) = await equipment_memory.load_all_safing(plant.store)
    assert (str(safing_command.error), plant.answers.stats.declined_stops) == ("the tool is locked", 1)
    loaded = await plant.runs.load("J1")
    assert loaded
    assert [str(past_attempt.error) for past_attempt in loaded.stored.run.past.values()] == [
        "not stopped: the tool is locked"
    ]


@pytest.mark.parametrize("outcome", ["error", "unknown"])
async def test_declined_reset_is_sent_until_it_is_carried_out(plant: Plant, tool: FakeEquipment, outcome: str) -> None:
    await abort_while_away(plant, tool)
    tool.reachable = True
    seconds = Seconds()
    sender = sender_of(plant, tool, seconds)
    await sender.refresh()
    seconds.now += 2
    await send_due(sender, tool)
    (reset,) = [command for command in tool.commands if command.phase is Phase.RESET]
    for _ in range(2):
        if outcome == "error":
            await plant.answer(reset, error="the clamp is locked")
        else:
            await plant.answers.answer(OutcomeUnknown(reset.command_id, "the clamp is locked"))
    (safing_command,) = await equipment_memory.load_all_safing(plant.store)
    assert (str(safing_command.error), plant.answers.stats.declined_stops) == ("the clamp is locked", 2)
    seconds.now += 5
    await send_due(sender, tool)
    assert tool.received(Phase.RESET) == ["clamp"] * 2
    await plant.answer(reset, {"open": True})
    assert await equipment_memory.load_all_safing(plant.store) == []


async def test_late_result_is_kept_after_its_stop_was_released(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    request = ReleaseRequest(
        equipment="tool", scopes=(SCOPE,), by="kim", reason="air cut off", source="/mes", event_id="r1"
    )
    await release(plant.store, {"tool": (TIGHTEN,)}, request, DEDUPE_MS)
    await send_due(sender_of(plant, tool), tool)
    await plant.answer(tool.commands[0], {"torque": 85})
    assert plant.answers.stats.late == 1


async def test_answer_without_result_confirms_a_stop(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    await plant.answer(tool.commands[0], error="stopped")
    assert await equipment_memory.load_all_safing(plant.store) == []


async def test_unreadable_safing_command_does_not_hide_others(plant: Plant) -> None:
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    await plant.store.execute("HSET", plant.store.keys.safing(), "stop:x", "{")
    assert [safing_command.job_id for safing_command in await equipment_memory.load_all_safing(plant.store)] == ["J1"]


async def test_normal_run_leaves_no_safing_command(plant: Plant, tool: FakeEquipment) -> None:
    await plant.teach(
        "clamped", linear(action("clamp", "one", qualifier="S"), action("clamp", "two", "open.v1", qualifier="R"))
    )
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "clamped"))
        for number in (1, 2):
            await _until_sent(tool, number)
            await plant.answer(tool.commands[-1], {"ok": True})
        await plant.until_state("J1", JobState.ENDED)
    assert await equipment_memory.load_all_safing(plant.store) == []


async def _until_sent(tool: FakeEquipment, number: int) -> None:
    await until_true(lambda: len(tool.commands) == number)


async def test_reset_is_sent_at_once_after_a_reconnect_between_two_polls(plant: Plant, tool: FakeEquipment) -> None:
    """A tool that restarts within seconds has forgotten the reset: its connections count, not what a poll sees."""
    await abort_while_away(plant, tool)
    sender = sender_of(plant, tool)
    await send_due(sender, tool)
    for times in (1, 2):
        tool.reachable = False
        tool.reachable = True
        await send_due(sender, tool)
        assert len(tool.received(Phase.RESET)) == times


async def test_stop_of_connected_equipment_is_repeated_in_seconds(plant: Plant, tool: FakeEquipment) -> None:
    """The first sending is that of the outbox: the sender repeats it after 2 s, 5 s, and then each 10 s."""
    seconds = Seconds()
    sender = sender_of(plant, tool, seconds)
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    at = []
    for second in range(40):
        before = len(tool.received(Phase.STOP))
        await send_due(sender, tool)
        at += [second] * (len(tool.received(Phase.STOP)) - before)
        seconds.now += 1
    assert at == [2, 7, 17, 27, 37]


async def test_equipment_that_declines_for_ever_is_bounded_and_visible(
    plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    """An hour: six messages a minute, seven lines of log, one record at the job, and the reason with its tries."""
    seconds = Seconds()
    sender = sender_of(plant, tool, seconds)
    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    with capture_logs() as logs:
        for second in range(3600):
            sent = len(tool.received(Phase.STOP))
            if second % 5 == 0:
                await sender.refresh()
            await sender.send_due_to(tool)
            if len(tool.received(Phase.STOP)) > sent:
                await plant.answers.stopped(tool.commands[0].command_id, f"locked, try {second % 7}")
            seconds.now += 1
            clock.now += 1000
    assert len(tool.received(Phase.STOP)) == 361
    assert len([entry for entry in logs if entry["event"] == "safing command sent again"]) == 6
    (open_stop,) = sender.open_at(tool)
    assert (open_stop.what, open_stop.tries) == ("stop", 362)
    assert str(open_stop.reason).startswith("locked, try")
    assert len(await _late_errors(plant, "J1")) == 1


async def test_many_open_stops_of_one_tool_are_sent_a_few_at_once(plant: Plant, tool: FakeEquipment) -> None:
    stop = equipment_memory.SafingCommand(
        phase=Phase.STOP,
        command_id="",
        type_id=TIGHTEN,
        scope=SCOPE,
        job_id="J1",
        correlation_id="c",
        action="a",
        attempt=1,
        since=1,
    )
    for number in range(25):
        another = msgspec.structs.replace(stop, command_id=f"J{number}/R/a/1")
        await plant.store.commit(equipment_memory.save_safing(plant.store.keys, another))
    sender = sender_of(plant, tool)
    counts = []
    for _ in range(4):
        await send_due(sender, tool)
        counts.append(len({command.command_id for command in tool.commands}))
    assert counts == [10, 20, 25, 25]


async def test_equipment_that_does_not_answer_delays_no_other(plant: Plant, tool: FakeEquipment) -> None:
    class Mute(FakeEquipment):
        async def stop(self, command: Command) -> None:
            await asyncio.Event().wait()

    mute = Mute("mute")
    for type_id in ("mute.v1", TIGHTEN):
        stop = equipment_memory.SafingCommand(
            phase=Phase.STOP,
            command_id=f"J1/R/{type_id}/1",
            type_id=type_id,
            scope=SCOPE,
            job_id="J1",
            correlation_id="c",
            action="a",
            attempt=1,
            since=1,
        )
        await plant.store.commit(equipment_memory.save_safing(plant.store.keys, stop))
    sender = SafingSender(plant.runs, (SCOPE,), {"mute.v1": mute, TIGHTEN: tool}, plant.runs.clock)
    async with background_task(sender.run(), "safing"):
        await until_true(lambda: tool.received(Phase.STOP))


async def test_stop_confirmed_during_the_check_before_it_is_sent_is_dropped(plant: Plant, tool: FakeEquipment) -> None:
    """The store still has it when it is read, and the next poll, which ends first, has it no more."""

    class Slow(LosingStore):
        async def execute(self, command: str, *arguments: str | bytes | int) -> Any:
            found = await super().execute(command, *arguments)
            if command == "HMGET":
                await plant.answers.stopped(tool.commands[0].command_id, None)
                await sender.refresh()
            return found

    await started(plant, "J1")
    await plant.ask(Cause.ABORT, "J1")
    seconds = Seconds()
    sender = sender_of(Plant(Slow(plant.store, []), {TIGHTEN: tool}, plant.runs.clock), tool, seconds)
    await sender.refresh()
    seconds.now += 10
    await send_due(sender, tool)
    assert (tool.received(Phase.STOP), sender.open_commands) == ([], ())


async def test_stop_of_a_decision_is_known_before_the_next_poll(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    sender = SafingSender(plant.runs, (SCOPE,), {TIGHTEN: tool}, plant.runs.clock, poll_interval_s=3600)
    async with background_task(sender.run(), "safing"):
        await asyncio.sleep(0)
        await plant.ask(Cause.ABORT, "J1")
        await until_true(lambda: sender.open_commands)


async def test_stop_of_disconnected_equipment_has_no_tries(plant: Plant, tool: FakeEquipment) -> None:
    sender = sender_of(plant, tool)
    await abort_while_away(plant, tool)
    await send_due(sender, tool)
    assert [(open_safing.what, open_safing.tries) for open_safing in sender.open_at(tool)] == [("reset", 0)]


async def test_released_stop_is_not_sent_again(plant: Plant, tool: FakeEquipment) -> None:
    await abort_while_away(plant, tool)
    sender = sender_of(plant, tool)
    (open_reset,) = await equipment_memory.load_all_safing(plant.store)
    request = ReleaseRequest(
        equipment="tool",
        scopes=(open_reset.scope,),
        command_id=open_reset.command_id,
        by="kim",
        reason="air cut off",
        source="/mes",
        event_id="1",
    )
    await release(plant.store, {"tool": (open_reset.type_id,)}, request, DEDUPE_MS)
    tool.reachable = True
    with capture_logs() as logs:
        await send_due(sender, tool)
    (record,) = [entry for entry in logs if entry["event"] == "stop released"]
    assert (record["audit"], record["by"], record["reason"]) == ("equipment.release", "kim", "air cut off")
    assert (tool.received(Phase.RESET), sender.open_commands) == ([], ())
    assert await equipment_memory.load_all_safing(plant.store) == []
    assert await _late_errors(plant, "J1") == ["stop released by kim: air cut off"]


async def test_release_is_recorded_at_the_job_after_an_outage(plant: Plant, tool: FakeEquipment, clock: Clock) -> None:
    """The store goes away after the release: the next poll records it at the job and removes the stop, once."""
    await abort_while_away(plant, tool)
    (open_reset,) = await equipment_memory.load_all_safing(plant.store)
    released = msgspec.structs.replace(open_reset, released_by="kim", release_reason="air cut off")
    await plant.store.commit(equipment_memory.save_safing(plant.store.keys, released))
    sender = sender_of(Plant(LosingStore(plant.store, [Loss.REQUEST]), {TIGHTEN: tool}, clock), tool)
    with pytest.raises(Unavailable):
        await send_due(sender, tool)
    for _ in range(2):
        await send_due(sender, tool)
    assert await equipment_memory.load_all_safing(plant.store) == []
    assert await _late_errors(plant, "J1") == ["stop released by kim: air cut off"]


async def test_release_for_a_removed_job_is_discarded(plant: Plant, tool: FakeEquipment) -> None:
    await abort_while_away(plant, tool)
    (open_reset,) = await equipment_memory.load_all_safing(plant.store)
    await plant.ask(Cause.CLEAR, "J1")
    released = msgspec.structs.replace(open_reset, released_by="kim", release_reason="air cut off")
    await plant.store.commit(equipment_memory.save_safing(plant.store.keys, released))
    await send_due(sender_of(plant, tool), tool)
    assert await equipment_memory.load_all_safing(plant.store) == []


async def _late_errors(plant: Plant, job_id: str) -> list[str | None]:
    stored_run = await runs.load(plant.store, job_id)
    assert stored_run is not None
    return [str(past_attempt.error) for past_attempt in stored_run.run.past.values() if past_attempt.error]
