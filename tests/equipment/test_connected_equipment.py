"""Equipment with any connection is retried, and its unfinished commands are executed on the next connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from edge.equipment.connected_equipment import CommandMemory, open_connected
from edge.equipment.device import Device, DeviceEvent, DeviceEvents
from edge.foundation.backoff import MOST_TRIES
from edge.foundation.errors import Refused, SettingsError, Unavailable
from edge.model.equipment_traffic import TrafficKind
from edge.sfc.signal import Phase
from edge.station.equipment import Command, EquipmentAnswer, OutcomeUnknown
from tests.conftest import WaitUntil
from tests.equipment.contract import NEXT, SCOPES, TYPE_ID, WORK
from tests.equipment.recording_station import RecordingStation


class Plug:
    """A device that connects at the second attempt and is lost during its first command."""

    def __init__(self) -> None:
        self.attempts = 0
        self.begun: list[str] = []
        self.settled_ids: list[str] = []
        self.happenings: asyncio.Queue[DeviceEvent] = asyncio.Queue()
        self.taken: list[DeviceEvent] = []

    @asynccontextmanager
    async def connecting(self) -> AsyncIterator[tuple[Device, DeviceEvents]]:
        self.attempts += 1
        if self.attempts == 1:
            raise Unavailable("not plugged in")
        yield self, self._happen()

    async def _happen(self) -> DeviceEvents:
        while True:
            yield await self.happenings.get()

    async def catch_up(self) -> None:
        """Return at once: there are no results."""

    async def handle_event(self, device_event: DeviceEvent) -> None:
        self.taken.append(device_event)

    @property
    def problem(self) -> str:
        return ""

    async def perform(self, command: Command) -> Any:
        self.begun.append(command.command_id)
        if len(self.begun) == 1:
            raise Unavailable("pulled out")
        return {"done": True}

    async def stop(self, command: Command) -> None:
        """Return at once: no command runs for long."""

    async def settle(self, command: Command) -> None:
        self.settled_ids.append(command.command_id)


async def test_unanswered_command_is_executed_once_the_device_connects(wait_until: WaitUntil) -> None:
    station, plug = RecordingStation(), Plug()
    station.unanswered = [WORK]
    async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting) as equipment:
        assert not equipment.connected
        with pytest.raises(Unavailable, match="plug at the wall is not connected"):
            await equipment.send(WORK)
        await wait_until(lambda: station.answers)
    assert station.answers == [EquipmentAnswer(WORK.command_id, {"done": True})]
    assert plug.begun == [WORK.command_id] * 2
    assert plug.attempts == 3
    assert plug.settled_ids == [WORK.command_id]


async def test_reset_that_the_device_declined_is_performed_again(wait_until: WaitUntil) -> None:
    class Locked(Plug):
        async def perform(self, command: Command) -> Any:
            self.begun.append(command.command_id)
            if len(self.begun) == 1:
                raise Refused("device", "the tool is locked")
            return {"done": True}

    station, plug = RecordingStation(), Locked()
    reset = replace(WORK, phase=Phase.RESET, command_id=f"{WORK.command_id}/reset")
    async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting) as equipment:
        await wait_until(lambda: equipment.connected)
        for count in (1, 2, 2):
            await equipment.reset(reset)
            await wait_until(lambda count=count: len(station.answers) == count)
    assert [answer.error for answer in station.answers] == ["the tool is locked", None]
    assert len(plug.begun) == 2


async def test_device_event_reaches_its_handler(wait_until: WaitUntil) -> None:
    plug = Plug()
    async with open_connected("plug", "the wall", (TYPE_ID,), RecordingStation(), SCOPES, plug.connecting):
        plug.happenings.put_nowait({"pressed": True})
        await wait_until(lambda: plug.taken)
    assert plug.taken == [{"pressed": True}]


async def test_invalid_device_event_is_discarded_without_a_reconnect(wait_until: WaitUntil) -> None:
    class Hostile(Plug):
        async def _happen(self) -> DeviceEvents:
            yield Refused("unreadable", "a structure is not as defined")
            yield {"Result": None}
            yield {"Result": "T1"}
            await asyncio.Event().wait()

        async def handle_event(self, device_event: DeviceEvent) -> None:
            self.taken.append({"length": len(device_event["Result"])})

    station, plug = RecordingStation(), Hostile()
    async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting):
        await wait_until(lambda: plug.taken)
    assert (plug.attempts, plug.taken) == (2, [{"length": 2}])
    assert [(refused.way, refused.kind, str(refused.reason)) for refused in station.refused] == [
        ("the wall", "unreadable", "a structure is not as defined"),
        ("the wall", "internal", "what happened met a defect of this software: TypeError"),
    ]


async def test_ended_event_stream_is_reported_as_a_lost_connection(wait_until: WaitUntil) -> None:
    class Ending(Plug):
        async def _happen(self) -> DeviceEvents:
            yield {}

    plug, station = Ending(), RecordingStation()
    async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting):
        await wait_until(lambda: plug.attempts > 2)
    assert (TrafficKind.LOST, "plug at the wall has ended the connection") in station.traffic


async def test_every_connection_loss_is_logged_even_with_the_same_reason(
    wait_until: WaitUntil,
) -> None:
    class Loose(Plug):
        async def _happen(self) -> DeviceEvents:
            yield {}
            raise Unavailable("pulled out")

    plug = Loose()
    with capture_logs() as logs:
        async with open_connected("plug", "the wall", (TYPE_ID,), RecordingStation(), SCOPES, plug.connecting):
            await wait_until(lambda: plug.attempts > 3)
    reasons = [entry["reason"] for entry in logs if entry["event"] == "equipment not connected, retrying"]
    assert reasons[:3] == ["not plugged in", "pulled out", "pulled out"]


async def test_command_is_retried_after_a_defect_in_a_kind(wait_until: WaitUntil) -> None:
    class Defective(Plug):
        async def perform(self, command: Command) -> Any:
            self.begun.append(command.command_id)
            if len(self.begun) == 1:
                raise ZeroDivisionError
            return {"done": True}

    station, plug = RecordingStation(), Defective()
    station.unanswered = [WORK]
    async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting):
        await wait_until(lambda: station.answers)
    assert plug.begun == [WORK.command_id] * 2


async def test_command_with_a_repeated_defect_fails_and_blocks_no_other(wait_until: WaitUntil) -> None:
    class Defective(Plug):
        async def perform(self, command: Command) -> Any:
            self.begun.append(command.command_id)
            if command is WORK:
                raise KeyError("JobId")
            return {"done": True}

    station, plug = RecordingStation(), Defective()
    station.unanswered = [WORK, NEXT]
    async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting, retry_s=(0.01, 0.01)):
        await wait_until(lambda: len(station.answers) == 2)
    assert plug.begun == [*[WORK.command_id] * MOST_TRIES, NEXT.command_id]
    error = "the command met a defect of this software: KeyError"
    assert station.answers == [
        EquipmentAnswer(WORK.command_id, error=error),
        EquipmentAnswer(NEXT.command_id, {"done": True}),
    ]


async def test_result_that_cannot_be_recorded_fails_its_command_once(
    wait_until: WaitUntil,
) -> None:
    class Strict(RecordingStation):
        async def answer(self, answer: EquipmentAnswer | OutcomeUnknown) -> None:
            if isinstance(answer, EquipmentAnswer) and answer.error is None:
                raise TypeError("a set is not JSON")
            await super().answer(answer)

    station, plug = Strict(), Plug()
    station.unanswered = [WORK]
    async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting):
        await wait_until(lambda: station.answers)
    reason = "its result met a defect of this software: TypeError"
    assert station.answers == [EquipmentAnswer(WORK.command_id, error=reason)]
    # Once for the lost connection, once for the next.
    assert plug.begun == [WORK.command_id] * 2


async def test_connecting_is_retried_until_the_device_is_ready(wait_until: WaitUntil) -> None:
    class Starting(Plug):
        @asynccontextmanager
        async def connecting(self) -> AsyncIterator[tuple[Device, DeviceEvents]]:
            self.attempts += 1
            if self.attempts < 3:
                raise Refused("unknown_node", "it is not ready yet")
            yield self, self._happen()

    plug = Starting()
    async with open_connected("plug", "the wall", (TYPE_ID,), RecordingStation(), SCOPES, plug.connecting) as equipment:
        await wait_until(lambda: equipment.connected)
    assert plug.attempts == 3


async def test_settings_error_after_a_first_connection_is_retried(wait_until: WaitUntil) -> None:
    class Renewed(Plug):
        @asynccontextmanager
        async def connecting(self) -> AsyncIterator[tuple[Device, DeviceEvents]]:
            async with super().connecting() as opened:
                if self.attempts == 3:
                    raise SettingsError(["key.pem: not the key of our certificate"])
                yield opened

    station, plug = RecordingStation(), Renewed()
    station.unanswered = [WORK]
    async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting):
        await wait_until(lambda: station.answers)
    assert plug.attempts == 4


async def test_permanent_connection_error_ends_the_equipment_task() -> None:
    @asynccontextmanager
    async def connecting() -> AsyncIterator[tuple[Device, DeviceEvents]]:
        raise SettingsError(["no library"], "Install it.")
        yield

    with pytest.raises(BaseExceptionGroup) as failure:
        async with open_connected("plug", "the wall", (TYPE_ID,), RecordingStation(), SCOPES, connecting):
            await asyncio.Event().wait()
    assert failure.group_contains(SettingsError)


async def test_recorder_receives_connections_commands_events_and_answers(wait_until: WaitUntil) -> None:
    station, plug = RecordingStation(), Plug()
    station.unanswered = [WORK]
    async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting) as equipment:
        await wait_until(lambda: station.answers)
        plug.happenings.put_nowait({"pressed": True})
        await wait_until(lambda: plug.taken)
        await equipment.stop(WORK)
    assert station.traffic == [
        (TrafficKind.LOST, "not plugged in"),
        (TrafficKind.CONNECTED, [WORK]),
        (TrafficKind.LOST, "pulled out"),
        (TrafficKind.CONNECTED, [WORK]),
        (TrafficKind.ANSWER, EquipmentAnswer(WORK.command_id, {"done": True})),
        (TrafficKind.HAPPENING, {"pressed": True}),
        (TrafficKind.STOP, WORK),
    ]


async def test_device_is_stopped_with_the_parameters_of_the_start(
    wait_until: WaitUntil,
) -> None:
    class Busy(Plug):
        def __init__(self) -> None:
            super().__init__()
            self.stopped: list[Command] = []

        async def perform(self, command: Command) -> Any:
            self.begun.append(command.command_id)
            await asyncio.Event().wait()

        async def stop(self, command: Command) -> None:
            self.stopped.append(command)

    plug = Busy()
    async with open_connected("plug", "the wall", (TYPE_ID,), RecordingStation(), SCOPES, plug.connecting) as equipment:
        await wait_until(lambda: equipment.connected)
        await equipment.send(WORK)
        await wait_until(lambda: plug.begun)
        await equipment.stop(replace(WORK, phase=Phase.STOP, parameters={}))
    assert plug.stopped == [WORK]


async def test_continuous_device_events_do_not_delay_commands(wait_until: WaitUntil) -> None:
    class Restless(Plug):
        async def _happen(self) -> DeviceEvents:
            while True:
                yield {"pressed": True}

        async def handle_event(self, device_event: DeviceEvent) -> None:
            """Ignore the event."""

    station, plug = RecordingStation(), Restless()
    station.unanswered = [WORK]
    async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting):
        await wait_until(lambda: station.answers)


async def test_repeated_discarded_events_are_all_recorded_and_logged_a_few_times(wait_until: WaitUntil) -> None:
    class Babbling(Plug):
        async def _happen(self) -> DeviceEvents:
            for _ in range(100):
                yield Refused("unreadable", "a structure is not as defined")
            await asyncio.Event().wait()

    station, plug = RecordingStation(), Babbling()
    with capture_logs() as logs:
        async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting):
            await wait_until(lambda: len(station.refused) == 100)
    assert len([entry for entry in logs if entry["event"] == "equipment event discarded"]) == 10


async def test_every_defect_of_a_command_is_reported_with_its_cause(wait_until: WaitUntil) -> None:
    defects: list[Exception] = [KeyError("JobId"), ZeroDivisionError()]

    class Defective(Plug):
        async def perform(self, command: Command) -> Any:
            if defects:
                raise defects.pop()
            return {"done": True}

    station, plug = RecordingStation(), Defective()
    station.unanswered = [WORK]
    with capture_logs() as logs:
        async with open_connected(
            "plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting, retry_s=(0.01, 0.01)
        ):
            await wait_until(lambda: station.answers)
    causes = [repr(entry["exc_info"]) for entry in logs if entry["event"] == "equipment failed, retrying"]
    assert causes == ["ZeroDivisionError()", "KeyError('JobId')"]
    lost = [data for what, data in station.traffic if what is TrafficKind.LOST]
    assert lost == ["not plugged in", "ZeroDivisionError", "KeyError"]


async def test_defect_on_each_connection_is_logged_a_few_times_with_traceback(wait_until: WaitUntil) -> None:
    class Defective(Plug):
        async def _happen(self) -> DeviceEvents:
            if self.attempts > 0:
                raise ZeroDivisionError
            yield {}

    plug = Defective()
    with capture_logs() as logs:
        async with open_connected(
            "plug", "the wall", (TYPE_ID,), RecordingStation(), SCOPES, plug.connecting, retry_s=(0.001, 0.001)
        ):
            await wait_until(lambda: plug.attempts > 15)
    assert len([entry for entry in logs if entry["event"] == "equipment failed, retrying"]) == 10


async def test_long_device_message_is_truncated_and_made_encodable(wait_until: WaitUntil) -> None:
    class Verbose(Plug):
        async def perform(self, command: Command) -> Any:
            raise Refused("device", "\udcff" + "no " * 1_000_000)

    station, plug = RecordingStation(), Verbose()
    station.unanswered = [WORK]
    async with open_connected("plug", "the wall", (TYPE_ID,), station, SCOPES, plug.connecting):
        await wait_until(lambda: station.answers)
    assert station.answers[0].error == f"?{'no ' * 1000}"[:500] + "…"


def test_queued_command_is_unsent_until_it_begins_or_ends() -> None:
    memory = CommandMemory()
    memory.note_queued(WORK)
    memory.note_queued(NEXT)
    assert memory.is_unsent(WORK.command_id)
    memory.note_begun(WORK.command_id)
    memory.note_ended(NEXT.command_id)
    assert not memory.is_unsent(WORK.command_id)
    assert not memory.is_unsent(NEXT.command_id)


def test_command_that_was_offered_before_may_have_left() -> None:
    memory = CommandMemory()
    memory.note_queued(replace(WORK, offered_again=True))
    assert not memory.is_unsent(WORK.command_id)


def test_oldest_ended_command_is_forgotten_first() -> None:
    memory = CommandMemory(limit=2)
    for number in range(3):
        memory.note_ended(str(number))
    assert [memory.has_ended(str(number)) for number in range(3)] == [False, True, True]


def test_commands_that_are_never_sent_do_not_fill_the_memory() -> None:
    memory = CommandMemory(limit=2)
    commands = [replace(WORK, command_id=str(number)) for number in range(3)]
    for command in commands:
        memory.note_queued(command)
        memory.count_defect(command.command_id)
    assert [memory.is_unsent(order.command_id) for order in commands] == [False, True, True]
    assert [memory.count_defect(str(number)) for number in (2, 0)] == [2, 1]


def test_defects_of_a_command_are_counted_until_it_ends() -> None:
    memory = CommandMemory()
    assert [memory.count_defect("a") for _ in range(2)] == [1, 2]
    memory.note_ended("a")
    assert memory.count_defect("a") == 1
