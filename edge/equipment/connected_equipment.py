"""Connected equipment: executes commands one by one while its device is connected; each kind provides the device."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, Protocol, runtime_checkable

import structlog
from msgspec.structs import replace

from edge.equipment.device import (
    STOP_SECONDS,
    Connector,
    Device,
    DeviceEvents,
    DeviceOutcomeUnknownError,
    SubscribingDevice,
    UnreadableEventError,
    bounded_message,
    bounded_text,
    complete_in_time,
    describe_event,
    handle_event,
    root_cause,
    settle_device,
    stop_device,
    surrender_device,
)
from edge.equipment.obsolete_command import CHECK_SECONDS, ObsoleteCommandError, until_obsolete
from edge.equipment.result_ledger import limit_memory
from edge.foundation.backoff import MOST_TRIES, Backoff, delay
from edge.foundation.errors import Refused, SettingsError, Unavailable, unwrap_group
from edge.foundation.instant import Clock, now_ms
from edge.foundation.rate_limit import LogThrottle, RateLimit
from edge.foundation.task_group import TaskGroup, background_task
from edge.foundation.text import Text, join_texts
from edge.links.connection_fault import fault_of
from edge.model.equipment_connection import NOT_CONNECTED_YET, ConnectionFault, ConnectionState
from edge.model.equipment_health import OpenSafing
from edge.model.equipment_traffic import TrafficKind
from edge.sfc.signal import Phase
from edge.station.equipment import (
    Command,
    EquipmentAnswer,
    NotSent,
    OutcomeUnknown,
    Repetition,
    StationPort,
    programs_of,
)
from edge.station.safing_tries import SafingTries
from edge.store.background import retry_while_unavailable
from edge.store.dead_letters import RefusedMessage

MEMORY = 10_000
"""The most commands that are remembered of each kind: the oldest is forgotten first."""


class CommandMemory:
    """The commands of this process, by their ids.

    One that was forgotten counts as sent and as not ended: its stop is sent, and the station knows its answer.
    """

    def __init__(self, limit: int = MEMORY) -> None:
        self._limit = limit
        self._unsent: dict[str, None] = {}
        self._defects: dict[str, int] = {}
        self._ended: dict[str, None] = {}

    def note_queued(self, command: Command) -> None:
        """Record a command that waits for the device; one that was offered before may have been on its way."""
        if not command.offered_again:
            self._unsent[command.command_id] = None
            limit_memory(self._unsent, self._limit)

    def note_begun(self, command_id: str) -> None:
        """Record that a command is on its way to the device."""
        self._unsent.pop(command_id, None)

    def is_unsent(self, command_id: str) -> bool:
        """Return whether a command has certainly never been on its way to any device."""
        return command_id in self._unsent

    def count_defect(self, command_id: str) -> int:
        """Count a defect that a command met; return how many there were."""
        count = self._defects[command_id] = self._defects.get(command_id, 0) + 1
        limit_memory(self._defects, self._limit)
        return count

    def note_ended(self, command_id: str) -> None:
        """Record that a command has an answer or a stop."""
        self._ended[command_id] = None
        self._unsent.pop(command_id, None)
        self._defects.pop(command_id, None)
        limit_memory(self._ended, self._limit)

    def has_ended(self, command_id: str) -> bool:
        """Return whether a command has an answer or a stop."""
        return command_id in self._ended


_LOG_INTERVAL_S: Final = 600.0

_log = structlog.get_logger(__name__)


@runtime_checkable
class RestingDevice(Protocol):
    """A device with a state for the time in which no command needs it."""

    async def rest(self) -> None:
        """Enter the state of rest; return when the device has confirmed it. Raises as `Device.perform`."""

    async def wake(self) -> None:
        """Stop the rest; raises as `Device.perform`."""


class DeviceRelease:
    """The release of a device after each command, until the device confirms it, also on a later connection.

    It lives with the connection and not in the store: the open commands say whether a command needs the tool. So each
    new connection begins with the release, and a bolt costs no further commit.
    """

    def __init__(self, name: str, answer_s: float = STOP_SECONDS, clock: Clock = now_ms) -> None:
        self._name = name
        self._answer_s = answer_s
        self._clock = clock
        self._time = asyncio.get_running_loop().time
        self._log = LogThrottle(_log, _LOG_INTERVAL_S, clock=self._time)
        self._tries: SafingTries | None = None
        self._is_used = False
        self._must_wake = False

    @property
    def open(self) -> OpenSafing | None:
        """The release that the device has not confirmed; None when it has."""
        return None if self._tries is None else self._tries.described("release")

    @property
    def wait_s(self) -> float | None:
        """The seconds until the next try; None when nothing is open."""
        return None if self._tries is None else max(0.0, self._tries.due_s - self._time())

    def withdraw(self) -> None:
        """Forget an open release: a command needs the tool, and its release follows."""
        self._tries, self._must_wake, self._is_used = None, False, True

    async def attempt(self, device: object, is_at_work: Callable[[], Awaitable[bool]]) -> None:
        """Put a device that can rest into that state, unless it works for a gateway; keep why it does not rest.

        Raises Unavailable when the connection is lost.
        """
        if not isinstance(device, RestingDevice):
            return
        try:
            is_at_rest = await self._let_rest(device, is_at_work)
        except Refused as refusal:
            self._fail(bounded_message(refusal))
        except TimeoutError:
            self._fail(f"no answer within {self._answer_s:g} s")
        except Unavailable as error:
            # A connection that is lost at its beginning is not a fact about a tool that no command has used.
            if self._is_used or self._tries is not None:
                self._fail(bounded_message(error))
            raise
        else:
            if is_at_rest and self._tries is not None:
                _log.info("tool disabled", equipment=self._name, tries=self._tries.count + 1)
            self._tries, self._must_wake, self._is_used = None, False, False

    def reconnect(self) -> None:
        """Begin the intervals again: the next try is the first on its connection."""
        if self._tries is not None:
            self._tries = self._tries.reconnected()

    async def _let_rest(self, device: RestingDevice, is_at_work: Callable[[], Awaitable[bool]]) -> bool:
        """Return True when the device rests, False when it works for a gateway."""
        while not await is_at_work():
            self._must_wake = False
            await complete_in_time(device, device.rest(), self._answer_s)
            if not await is_at_work():
                return True
            # Another gateway began a command between the two checks. It may have ended before the device woke up.
            self._must_wake = True
            await self._wake(device)
        if self._must_wake:
            await self._wake(device)
        return False

    async def _wake(self, device: RestingDevice) -> None:
        await complete_in_time(device, device.wake(), self._answer_s)
        self._must_wake = False

    def _fail(self, reason: str) -> None:
        self._tries = (self._tries or SafingTries(self._clock())).tried(self._time(), reason)
        self._log.warning("tool not disabled", self._name, equipment=self._name, tries=self._tries.count, reason=reason)


RETRY_SECONDS = (0.1, 5.0)
# Maximum number of log entries per window: for discarded events, which are all recorded, and for defects.
_LOGS_PER_WINDOW, _LOG_WINDOW_SECONDS = 10, 600.0


@asynccontextmanager
async def open_connected(
    name: str,
    place: str,
    type_ids: Collection[str],
    station: StationPort,
    scopes: Collection[str],
    connect: Connector,
    repetition: Repetition = Repetition.REPEATABLE,
    retry_s: tuple[float, float] = RETRY_SECONDS,
    check_s: float = CHECK_SECONDS,
    clock: Clock = now_ms,
) -> AsyncIterator["ConnectedEquipment"]:
    """Connect to the equipment for the length of the block, and reconnect while it is unavailable.

    `place` is the address shown to people; `retry_s` are the shortest and the longest delay of a retry. Every `check_s`
    seconds the station is asked whether it still waits for the command at work. A SettingsError of `connect` ends the
    block, unless an earlier connection succeeded.
    """
    equipment = ConnectedEquipment(name, place, type_ids, station, scopes, repetition, retry_s, check_s, clock)
    async with background_task(_keep_connected(equipment, connect, station), f"equipment {name}"):
        yield equipment


async def _keep_connected(equipment: "ConnectedEquipment", connect: Connector, station: StationPort) -> None:
    backoff = Backoff(*equipment.retry_s, stable=5.0)
    defects = RateLimit(_LOGS_PER_WINDOW, _LOG_WINDOW_SECONDS)
    last, has_worked = "", False
    while True:
        try:
            async with connect() as (device, device_events):
                last, has_worked = "", True
                await equipment.serve(device, device_events)
        except (Unavailable, Refused, SettingsError) as error:
            # Settings that worked once are valid: a file that they name may be in the middle of its renewal.
            if isinstance(error, SettingsError) and not has_worked:
                raise
            reason = bounded_message(error)
            equipment.note_failure(fault_of(error), bounded_text(error))
            if reason != last:
                _log.warning("equipment not connected, retrying", equipment=equipment.name, reason=reason)
                station.report_traffic(TrafficKind.LOST, reason)
            last = reason
        except Exception as error:  # noqa: BLE001 - a device that violates its protocol must not stop others
            defect = root_cause(error)
            if defects.try_acquire():
                _log.error("equipment failed, retrying", equipment=equipment.name, exc_info=defect)
            equipment.note_failure(
                ConnectionFault.OTHER, Text.of("a defect of this software: {name}", name=type(defect).__name__)
            )
            station.report_traffic(TrafficKind.LOST, type(defect).__name__)
        await backoff.pause()


class ConnectedEquipment:
    """Port of a device that needs a connection. The loss of the connection clears the device and the queue of commands.

    On each new connection the station lists the commands without an answer; the device finds out which have begun.
    """

    def __init__(
        self,
        name: str,
        place: str,
        type_ids: Collection[str],
        station: StationPort,
        scopes: Collection[str],
        repetition: Repetition = Repetition.REPEATABLE,
        retry_s: tuple[float, float] = RETRY_SECONDS,
        check_s: float = CHECK_SECONDS,
        clock: Clock = now_ms,
    ) -> None:
        self.name = name
        self.retry_s = retry_s
        self.connection = NOT_CONNECTED_YET
        self._clock = clock
        self._check_s = check_s
        self._repetition = repetition
        self._place = place
        self._station = station
        self._outstanding = partial(station.outstanding, scopes, type_ids)
        self.connection_count = 0
        """Number of connections since the start."""
        self._device: Device | None = None
        self._pending: dict[str, Command] = {}
        self._wake = asyncio.Event()
        self._running: tuple[Command, asyncio.Task[None]] | None = None
        self._superseded: list[Command] = []
        self._memory = CommandMemory()
        self._discard_logs = RateLimit(_LOGS_PER_WINDOW, _LOG_WINDOW_SECONDS)
        self._release = DeviceRelease(name)

    @property
    def connected(self) -> bool:
        """Whether the device is connected and accepts commands."""
        return self._device is not None

    def note_failure(self, fault: ConnectionFault, reason: Text) -> None:
        """Keep why the device is not connected; `since` stays that of the first failure in a row."""
        is_first = self.connection.connected or self.connection.since is None
        since = self._clock() if is_first else self.connection.since
        self.connection = ConnectionState(
            connected=False, since=since, fault=fault, reason=reason, retry_s=self.retry_s[1]
        )

    @property
    def problem(self) -> str | Text:
        """Reason why the connected device cannot execute commands; empty when it can."""
        return self._device.problem if self._device else ""

    @property
    def open_release(self) -> OpenSafing | None:
        """The release of its tool that the device has not confirmed; None when it has."""
        return self._release.open

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs of the connected device; empty where it cannot list them."""
        return programs_of(self._device)

    def repetition_of(self, type_id: str) -> Repetition:
        """Return what a start that is sent a second time may do."""
        return self._repetition

    async def send(self, command: Command) -> None:
        """Queue a start; raises Unavailable while the device is not connected."""
        self._queue(command)

    async def reset(self, command: Command) -> None:
        """Queue a reset ahead of all starts; raises Unavailable while the device is not connected."""
        self._queue(command)

    def _queue(self, command: Command) -> None:
        self._connected()
        self._station.report_traffic(TrafficKind.COMMAND, command)
        if self._memory.has_ended(command.command_id) or self._is_running(command):
            return
        self._pending[command.command_id] = command
        if command.phase is Phase.RESET:
            self._supersede(command)
        else:
            self._memory.note_queued(command)
        self._wake.set()

    def withdraw(self, command_id: str) -> bool:
        """Drop a start that waits in memory; return False for one that may have been on its way to the device."""
        if not self._memory.is_unsent(command_id):
            return False
        self._pending.pop(command_id, None)
        self._memory.note_ended(command_id)
        return True

    async def stop(self, command: Command) -> None:
        """Drop a queued command and stop the device. Raises Unavailable while the device is not connected."""
        device = self._connected()
        self._station.report_traffic(TrafficKind.STOP, command)
        self._memory.note_ended(command.command_id)
        # A stop has no parameters: those of the command define what to stop.
        pending = self._pending.pop(command.command_id, None)
        running, work = self._running if self._running and self._is_running(command) else (None, None)
        # A queued command is stopped too: it may have been started on an earlier connection.
        error, has_answered = await stop_device(device, running or pending or command)
        await surrender_device(device, command, work)
        await self._station.stopped(command.command_id, error, is_answer=has_answered)

    def _supersede(self, reset: Command) -> None:
        """Queue a reset ahead of all other commands, and cancel the starts of the action that it resets."""
        self._pending = {reset.command_id: reset} | self._pending
        for command in [order for order in self._pending.values() if _sets_what(order, reset)]:
            del self._pending[command.command_id]
            self._superseded.append(command)
        if self._running and _sets_what(self._running[0], reset):
            self._superseded.append(self._running[0])
            self._running[1].cancel()

    def _is_running(self, command: Command) -> bool:
        return self._running is not None and self._running[0].command_id == command.command_id

    async def serve(self, device: Device, device_events: DeviceEvents) -> None:
        """Serve one connection until it is lost; then raise Unavailable."""
        self._release.reconnect()
        if isinstance(device, SubscribingDevice):
            # First of all: until the tool is disabled, an operator can trigger it.
            await self._release.attempt(device, self._is_at_work)
            await device.subscribe()
        outstanding = await self._outstanding()
        self._station.report_traffic(TrafficKind.CONNECTED, outstanding)
        for command in outstanding:
            if not self._memory.has_ended(command.command_id):
                self._pending[command.command_id] = command
        self._wake.set()
        self._device = device
        self.connection_count += 1
        self.connection = ConnectionState(connected=True, since=self._clock())
        _log.info("equipment connected", equipment=self.name, at=self._place, outstanding=len(self._pending))
        try:
            with unwrap_group():
                async with background_task(self._run_commands(device), f"commands of {self.name}"):
                    await self._handle_events(device, device_events)
        finally:
            self._device = None
            self.connection = ConnectionState(connected=False, since=self._clock(), retry_s=self.retry_s[1])
            self._pending.clear()

    async def _handle_events(self, device: Device, device_events: DeviceEvents) -> None:
        async for device_event in device_events:
            self._station.report_traffic(TrafficKind.HAPPENING, describe_event(device_event))
            try:
                await handle_event(device, device_event)
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 - an event that is repeated must not end each connection
                await self._discard_event(error)
            # A device with a constant stream of events must not block the other tasks.
            await asyncio.sleep(0)
        raise Unavailable(Text.of("{name} at {place} has ended the connection", name=self.name, place=self._place))

    async def _discard_event(self, error: Exception) -> None:
        """Log an event that cannot be handled, at a limited rate, and record it at the station with the reason."""
        match error:
            case Refused():
                refusal = error
                fields: dict[str, Any] = {"reason": bounded_message(error)}
            case _:
                refusal = Refused(
                    "internal",
                    Text.of("what happened met a defect of this software: {name}", name=type(error).__name__),
                )
                fields = {"exc_info": error}
        if self._discard_logs.try_acquire():
            _log.warning("equipment event discarded", equipment=self.name, **fields)
        payload = refusal.payload if isinstance(refusal, UnreadableEventError) else b""
        await self._station.record_refusal(
            RefusedMessage(self._place, "", "", refusal.kind, bounded_text(refusal), payload)
        )

    def _connected(self) -> Device:
        if self._device is None:
            message = Text.of("{name} at {place} is not connected", name=self.name, place=self._place)
            if self.connection.reason:
                message = join_texts(": ", (message, self.connection.reason))
            raise NotSent(message, "It is tried again and again.")
        return self._device

    async def _run_commands(self, device: Device) -> None:
        if not isinstance(device, SubscribingDevice):
            await self._release.attempt(device, partial(self._is_at_work, frozenset(self._pending)))
        try:
            await device.catch_up()
        except Refused as refusal:
            _log.warning("catch-up declined", equipment=self.name, reason=bounded_message(refusal))
        async with TaskGroup() as tasks:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._release.wait_s):
                        await self._wake.wait()
                self._wake.clear()
                is_release_due = self._release.open is not None
                while self._pending:
                    is_release_due = True
                    command = self._pending.pop(next(iter(self._pending)))
                    self._release.withdraw()
                    self._memory.note_begun(command.command_id)
                    task = tasks.create_task(self._perform(device, command), name=f"command {command.command_id}")
                    self._running = command, task
                    try:
                        await asyncio.wait((task,))
                    finally:
                        self._running = None
                if is_release_due:
                    await self._release.attempt(device, self._is_at_work)

    async def _is_at_work(self, earlier: Collection[str] = ()) -> bool:
        """Return whether a gateway on the store has begun a command that still waits for its answer.

        Our own in the queue have not begun: they enable the device themselves; `earlier` ones may have begun before.
        """
        commands = await retry_while_unavailable("open commands", self._outstanding)
        queued = self._pending.keys() - set(earlier)
        starts = [command for command in commands if command.phase is Phase.START and command.command_id not in queued]
        return any(start.begun or self._repetition is not Repetition.ONCE for start in starts)

    async def _perform(self, device: Device, command: Command) -> None:
        try:
            answers: list[EquipmentAnswer | OutcomeUnknown] = [await self._outcome(device, command)]
        except ObsoleteCommandError as error:
            _log.warning("command obsolete", equipment=self.name, command=command.command_id, reason=error.message)
            return
        if command.phase is Phase.RESET:
            reason = Text.of("the action was reset before it ended")
            answers += [EquipmentAnswer(order.command_id, error=reason) for order in self._superseded]
            self._superseded.clear()
        for answer in answers:
            self._station.report_traffic(TrafficKind.ANSWER, _in_english(answer))
            await self._answer(answer)
            if isinstance(answer, EquipmentAnswer) and not _is_declined_reset(command, answer):
                self._memory.note_ended(answer.command_id)
        try:
            await settle_device(device, command, answers[0])
        except Refused as refusal:
            _log.warning("answered command not released", equipment=self.name, reason=bounded_message(refusal))

    async def _outcome(self, device: Device, command: Command) -> EquipmentAnswer | OutcomeUnknown:
        try:
            async with until_obsolete(command, self._station.is_outstanding, self._check_s):
                return EquipmentAnswer(command.command_id, data=await device.perform(command))
        except Refused as refusal:
            return EquipmentAnswer(command.command_id, error=bounded_text(refusal))
        except DeviceOutcomeUnknownError as error:
            return OutcomeUnknown(command.command_id, bounded_text(error))
        except (Unavailable, ObsoleteCommandError):
            raise
        except Exception as error:
            # A new connection may fix the defect. A command that fails each time must not block the others.
            if self._memory.count_defect(command.command_id) < MOST_TRIES:
                raise
            _log.exception("command abandoned", equipment=self.name, command=command.command_id)
            reason = Text.of("the command met a defect of this software: {name}", name=type(error).__name__)
            return EquipmentAnswer(command.command_id, error=reason)

    async def _answer(self, answer: EquipmentAnswer | OutcomeUnknown) -> None:
        attempt = 0
        while True:
            try:
                await self._station.answer(answer)
            except Unavailable as error:
                _log.warning("answer not recorded, retrying", equipment=self.name, reason=error.message)
                attempt += 1
                await asyncio.sleep(delay(attempt, *self.retry_s))
            except Exception as error:
                # A retry on a new connection would repeat the work of the device, with the same error.
                if isinstance(answer, OutcomeUnknown) or answer.error is not None:
                    raise
                _log.exception("answer abandoned", equipment=self.name, command=answer.command_id)
                reason = Text.of("its result met a defect of this software: {name}", name=type(error).__name__)
                answer = EquipmentAnswer(answer.command_id, error=reason)
            else:
                return


def _in_english(answer: EquipmentAnswer | OutcomeUnknown) -> EquipmentAnswer | OutcomeUnknown:
    """Return an answer as the recorders of traffic have it."""
    if isinstance(answer, OutcomeUnknown):
        return replace(answer, reason=str(answer.reason))
    return answer if answer.error is None else replace(answer, error=str(answer.error))


def _sets_what(command: Command, reset: Command) -> bool:
    """Return whether a command is a start of the action that is reset."""
    same = (command.job_id, command.action) == (reset.job_id, reset.action)
    return same and command.phase is not Phase.RESET


def _is_declined_reset(command: Command, answer: EquipmentAnswer) -> bool:
    """Return whether the device declined a reset: it is sent again until the device has carried it out."""
    return command.phase is Phase.RESET and answer.command_id == command.command_id and answer.error is not None
