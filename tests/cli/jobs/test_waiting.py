"""The reason why a job waits is shown before, during and after its run."""

from datetime import UTC, datetime

import pytest

from edge.cli.jobs.waiting import waiting_text
from edge.drawing.marks import marks_of
from edge.foundation.instant import now_ms
from edge.model.job_state import Cause
from edge.sfc.signal import Withdrawn
from edge.station.public_job import public_detail
from edge.station.stored_job import find, load
from tests.station.plant import TIGHTEN, FakeEquipment, Plant, order, until_true
from tests.store.breaks import break_confirmation


async def lines_of(plant: Plant, job_id: str = "J1") -> list[str]:
    return list(waiting_text(await load(plant.store, job_id), now_ms()))


async def test_job_before_its_start_waits_for_a_person_or_a_gateway(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    assert (await lines_of(plant))[1] == "  it was not started: edge jobs start J1"
    await plant.ask(Cause.START, "J1")
    assert (await lines_of(plant))[
        1
    ] == "  no gateway has started it yet: is a gateway running that serves scope station-1?"


async def test_job_with_a_later_start_reports_its_start_time(plant: Plant) -> None:
    at = datetime.fromtimestamp(now_ms() / 1000 + 3600, UTC)
    await plant.order(Cause.STORE_AND_START, order("J1", start_time=at))
    assert (await lines_of(plant))[1] == f"  the job waits for its StartTime, {at.astimezone():%Y-%m-%d %H:%M:%S}"


async def test_ended_job_reports_its_error(plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1", "none-such"))
    await plant.order(Cause.STORE_AND_START, order("J2"))
    await plant.ask(Cause.ABORT, "J2")
    assert await lines_of(plant, "J2") == ["J2: Aborted; it accepts: clear", "  the job has ended: aborted by the MES"]


async def test_paused_job_has_no_deadline(plant: Plant, tool: FakeEquipment) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        await plant.ask(Cause.PAUSE, "J1")
    now = now_ms()
    lines = await lines_of(plant)
    assert lines[1].startswith("  paused for ")
    assert not any("at 20" in line for line in lines)
    detail = public_detail(await load(plant.store, "J1"), now)
    assert (detail.job.state, detail.job.substate, detail.paused) == ("Interrupted", "Suspended", True)
    assert detail.waits.halted.startswith("paused for ")


async def test_command_of_a_standstill_may_have_been_sent(plant: Plant, tool: FakeEquipment) -> None:
    """`edge jobs why` said "not sent yet" of a command that the tool had received and carried out."""
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        break_confirmation(plant.store)
        at = plant.runs.clock() + 9000
        stored_job = await find(plant.store, "J1", lambda: at)
    assert stored_job
    assert stored_job.net
    assert stored_job.run
    lines = list(waiting_text(stored_job, at, {TIGHTEN: "wrench"}))
    assert lines[1].startswith("  A: may have been sent to wrench, 9.")
    assert lines[3] == "      not met: steps.one.done: a may have been sent"
    assert lines[4].startswith("  action a of one: may have been sent, open for 9.")
    marks = marks_of(stored_job.net, stored_job.run, at, unsent=stored_job.unsent)
    assert [str(mark.text) for mark in marks.actions.values()] == ["may have been sent"]
    assert any("action a of one may have been sent, for 9" in str(text) for text in marks.waiting)
    (action,) = public_detail(stored_job, at).actions
    assert (action.sent, action.sending, action.sent_at is None) == (True, "may have been sent", False)


@pytest.mark.parametrize("may_have_left", [False, True])
async def test_command_that_was_not_surely_sent_is_named(
    plant: Plant, tool: FakeEquipment, *, may_have_left: bool
) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        await plant.ask(Cause.ABORT, "J1")
        withdrawn = Withdrawn(tool.commands[0].command_id, "why", may_have_left=may_have_left)
        await plant.runs.signal("J1", withdrawn)
    sending = "may have been sent" if may_have_left else "never sent"
    assert f"  action a of one: {sending}: why, attempt 1" in await lines_of(plant)
    (action,) = public_detail(await load(plant.store, "J1"), now_ms()).actions
    assert (action.action, action.sending, action.error) == ("a", sending, f"{sending}: why")
