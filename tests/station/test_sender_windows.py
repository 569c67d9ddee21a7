"""A start whose time passed before it could be sent is not sent; the run says whether an earlier process may have."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from edge.config import RedisSettings
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause, JobState
from edge.sfc.action import TIME_PASSED
from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.run import Association, Sending
from edge.sfc.signal import Begun, Phase, Tick
from edge.station.equipment import Command, Repetition
from edge.station.sender import Performed
from edge.store import equipment_memory, responses, runs
from edge.store.client import Store
from edge.store.runs import Outgoing
from tests.station.plant import (
    NOW,
    PHOTO,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    action,
    instance,
    linear,
    next_work,
    order,
    results_of,
    until,
)
from tests.station.test_answers_outcome import UnconfirmedStore

LIMITED = linear(action("a", "one", qualifier="L", duration_seconds=2), action("b", "two", PHOTO))
TIMED_OUT = linear(action("a", "one", timeout_seconds=2), action("b", "two", PHOTO))
LEFT = {
    "steps": [{"name": "one", "initial": True}, {"name": "two"}],
    "transitions": [{"source": "one", "target": "two", "condition": "steps.one.T > 2s"}],
    "actions": [action("a", "one"), action("b", "two", PHOTO)],
}


class Tool(FakeEquipment):
    """Equipment with a repetition of its own."""

    def __init__(self, repetition: Repetition) -> None:
        super().__init__("wrench")
        self.repetition = repetition

    def repetition_of(self, type_id: str) -> Repetition:
        return self.repetition


async def decided(store: Store, clock: Clock, recipe: Mapping[str, Any]) -> Plant:
    """Return a process that has decided to send the command of J1, and dies before it does."""
    plant = Plant(store, {TIGHTEN: FakeEquipment(), PHOTO: FakeEquipment()}, clock)
    await plant.teach("linear", recipe)
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.starter.start(await next_work(plant))
    return plant


@asynccontextmanager
async def successor(store: Store, clock: Clock, tool: FakeEquipment, camera: FakeEquipment) -> AsyncIterator[Plant]:
    """Work with the next process of the same name; its timers are served when `catch_up` is called.

    It waits for answers that are on their way before it serves a time limit: three seconds pass.
    """
    plant = Plant(store, {TIGHTEN: tool, PHOTO: camera}, clock)
    clock.now += 3_000
    async with plant.at_work():
        yield plant


async def first(store: Store) -> Association:
    stored_run = await runs.load(store, "J1")
    assert stored_run
    return stored_run.run.associations[key("a@one")]


@pytest.mark.parametrize("recipe", [LIMITED, TIMED_OUT, LEFT])
@pytest.mark.parametrize(
    ("repetition", "is_begun", "sending", "stops"),
    [
        (Repetition.ONCE, False, Sending.NEVER, []),
        (Repetition.ONCE, True, Sending.MAYBE, ["a"]),
        (Repetition.RECOGNISABLE, False, Sending.MAYBE, ["a"]),
        (Repetition.REPEATABLE, False, Sending.MAYBE, ["a"]),
    ],
)
async def test_start_of_an_ended_process_is_not_sent_after_its_time(
    store: Store,
    clock: Clock,
    recipe: Mapping[str, Any],
    repetition: Repetition,
    sending: Sending,
    stops: list[str],
    *,
    is_begun: bool,
) -> None:
    died = await decided(store, clock, recipe)
    if is_begun:
        await died.runs.signal("J1", Begun((await first(store)).command_id, "the process that died"))
    clock.now = NOW + 9_000
    tool, camera = Tool(repetition), FakeEquipment("camera")
    async with successor(store, clock, tool, camera) as plant, background_task(plant.timers.run(), "timers"):

        async def is_recorded() -> bool:
            return (await first(store)).sending is sending

        await until(is_recorded)
        await until(lambda: _has_stopped(tool, stops))
    association = await first(store)
    assert tool.received(Phase.STOP) == stops
    assert tool.received() == []
    assert association.error
    assert str(association.error).endswith(f"{sending}: {TIME_PASSED}")
    assert (association.sent_at is None) == (sending is Sending.NEVER)
    if sending is Sending.NEVER:
        assert await equipment_memory.load_all_safing(store) == []


async def _has_stopped(tool: FakeEquipment, stops: list[str]) -> bool:
    return tool.received(Phase.STOP) == stops


class BeginningTool(Tool):
    """Equipment that asks for the begun mark before a start, as a tool with `once` does."""

    async def send(self, command: Command) -> None:
        assert self.station
        await self.station.begin(command.command_id)
        await super().send(command)


async def test_start_that_waited_for_a_replica_and_was_ended_elsewhere_is_unsent(
    redis: RedisSettings, store: Store, clock: Clock
) -> None:
    """The former primary was back: its result said "timed out" only, and the tool saw nothing but stops."""
    tool, other_tool = BeginningTool(Repetition.ONCE), Tool(Repetition.ONCE)
    plant = Plant(UnconfirmedStore(store, ()), {TIGHTEN: tool, PHOTO: FakeEquipment("camera")}, clock)
    await plant.teach("linear", TIMED_OUT)
    async with plant.at_work(), instance(redis, {TIGHTEN: other_tool}, clock, consumer="other") as other:
        await plant.order(Cause.STORE_AND_START, order("J1"))

        async def has_begun() -> bool:
            stored_run = await runs.load(store, "J1")
            return stored_run is not None and (await first(store)).begun != ""

        await until(has_begun)
        clock.now = NOW + 9_000
        await other.runs.signal("J1", Tick())
        async with other.at_work():

            async def is_recorded() -> bool:
                return (await first(store)).sending is Sending.NEVER

            await until(is_recorded)
    association = await first(store)
    assert association.error
    assert str(association.error) == "timed out after 2 s; never sent: 0 of 1 replicas have confirmed within 1000 ms"
    assert tool.received() == []


async def test_response_names_the_command_and_the_reason(store: Store, clock: Clock) -> None:
    await decided(store, clock, TIMED_OUT)
    clock.now = NOW + 9_000
    async with (
        successor(store, clock, Tool(Repetition.ONCE), FakeEquipment()) as plant,
        background_task(plant.timers.run(), "timers"),
    ):

        async def is_named() -> bool:
            response = await responses.load(store, await plant.job("J1"))
            return response is not None and any(parameter.id == "NeverSent" for parameter in results_of(response))

        await plant.until_state("J1", JobState.ABORTED)
        await until(is_named)
        response = await responses.load(store, await plant.job("J1"))
    assert response
    (never,) = [parameter for parameter in results_of(response) if parameter.id == "NeverSent"]
    reason = f"timed out after 2 s; never sent: {TIME_PASSED}"
    assert [(subparameter.id, subparameter.value) for subparameter in never.subparameters or ()] == [("a", reason)]


@pytest.mark.parametrize(
    ("recipe", "again", "passed", "performed"),
    [
        (LIMITED, False, 1_999, Performed.SENT),
        (LIMITED, False, 2_000, Performed.TOO_LATE),
        (TIMED_OUT, True, 2_000, Performed.TOO_LATE),
        (LEFT, False, 2_001, Performed.SENT),
        (LEFT, True, 2_000, Performed.TOO_LATE),
        (LEFT, True, 1_999, Performed.SENT),
    ],
)
async def test_start_waits_for_the_timers_of_its_run_after_its_time(
    store: Store, clock: Clock, recipe: Mapping[str, Any], passed: int, performed: Performed, *, again: bool
) -> None:
    """A fresh command is sent although another deadline of its run is due; one of an earlier process is not."""
    plant = await decided(store, clock, recipe)
    clock.now = NOW + passed
    loaded = await plant.runs.get("J1")
    assert loaded
    outgoing = Outgoing(Phase.START, (await first(store)).command_id, "one", TIGHTEN, again)
    assert await plant.dispatch.perform(loaded, outgoing) is performed


async def test_paused_command_keeps_its_time(store: Store, clock: Clock) -> None:
    """The clocks of its run stand still."""
    plant = await decided(store, clock, LIMITED)
    await plant.ask(Cause.PAUSE, "J1")
    clock.now = NOW + 9_000
    loaded = await plant.runs.get("J1")
    assert loaded
    outgoing = Outgoing(Phase.START, (await first(store)).command_id, "one", TIGHTEN, again=True)
    assert await plant.dispatch.perform(loaded, outgoing) is Performed.SENT
