"""Tightening controllers (OPC 40450-1, 40451-1): a command executes one joining operation and returns its result.

The identifiers of the operation contain the id of the command. The controller returns it in the AssociatedEntities of
the result. With it the gateway finds the result again after a lost connection or a restart.
By default, a started joining is never started again: when its result cannot be found, its outcome is unknown.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

import structlog
from msgspec import Struct

from edge.equipment.connected_equipment import ConnectedEquipment
from edge.equipment.device import Device, DeviceEvent, DeviceEvents, DeviceOutcomeUnknownError
from edge.equipment.obsolete_command import ObsoleteCommandError
from edge.equipment.opcua import OpenSession, find_single_instance, open_opcua_equipment, open_session, readable_events
from edge.equipment.remembered_text import RememberedText, memory_of
from edge.equipment.repetition import StartPolicy, chosen_repetition
from edge.equipment.result_file import ResultFileReader, find_transfer
from edge.equipment.unclaimed import LateResults, OwnEvents
from edge.features.joining.collector import LAST_NUMBER, LAST_STARTED, JoiningCollector
from edge.features.joining.conversion import answer_data, joinings_in, result_data, validate_command
from edge.features.joining.late import LateJoinings
from edge.features.joining.lock import SETTLED_SECONDS, SharedTool, ToolLock, find_enabled
from edge.features.joining.methods import find_methods
from edge.features.joining.programs import JoiningPrograms
from edge.features.joining.schema import Result
from edge.features.joining.settings import IjtSettings
from edge.features.joining.state import ControllerState
from edge.features.joining.tool import JoiningTool, OpenRelease
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.links.opcua import ClientSession, EventField, TypeName
from edge.ports.result_trace import FILE_MEMBER
from edge.sfc.signal import Phase
from edge.station.equipment import Command, Repetition, StationPort


class JoiningEvents:
    """Reports what happens at a tool without a command as events of the station, by the settings `events`."""

    def __init__(self, name: str, type_ids: Mapping[Any, str], station: StationPort, scope: str) -> None:
        self._events = OwnEvents(name, type_ids, station, scope)

    async def report_own(self, result: Result, occurrence: str = "") -> bool:
        """Report a joining of the operator's own, the same one as the same event; return whether a job has used it.

        `occurrence` distinguishes a result from others with its id.
        """
        event_id = f"result {result['ResultMetaData']['ResultId']} {occurrence}".rstrip()
        return await self._events.report("result", result_data(result), event_id)

    async def report_error(self, message: str) -> None:
        """Report an error that stops the tool."""
        await self._events.report("error", {"message": message})


_TRANSFER_OPTIONS = TypeName("http://opcfoundation.org/UA/Machinery/Result/", 3004)


class JoiningFiles:
    """Adds references to the files of results to their data; without a `reader` the settings want none."""

    def __init__(self, session: ClientSession, reader: ResultFileReader | None) -> None:
        self._session = session
        self._reader = reader

    async def add(self, command: Command, result: Result, parts: Sequence[Result], data: dict[str, Any]) -> None:
        """Fetch the files of a result and of its joinings, which are `parts` where it does not hold them.

        Raises Unavailable when the connection is lost, as `ResultFileReader.read`.
        """
        if self._reader is not None:
            for result_id, found in _offering(result, parts, data):
                options = await self._options(result_id)
                found[FILE_MEMBER] = await self._reader.read(command.command_id, result_id, options)

    async def add_late(self, command_id: str, result: Result, data: dict[str, Any]) -> None:
        """Fetch the files of a late result of a command."""
        if self._reader is not None:
            for result_id, found in _offering(result, (), data):
                found[FILE_MEMBER] = await self._reader.read_late(command_id, await self._options(result_id))

    async def _options(self, result_id: str) -> Any:
        return await self._session.structure(_TRANSFER_OPTIONS, {"ResultId": result_id})


def _offering(result: Result, parts: Sequence[Result], data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the id of each result with a file, from the outermost one inwards, and the data that describe it."""
    meta: Mapping[str, Any] = result["ResultMetaData"]
    if meta.get("HasTransferableDataOnFile"):
        yield meta["ResultId"], data
    for entry, described in zip(joinings_in(result) or parts, data.get("results", {}).values(), strict=False):
        yield from _offering(entry, (), described)


_UA = "http://opcfoundation.org/UA/"
_RESULT = "http://opcfoundation.org/UA/Machinery/Result/"
_IJT = "http://opcfoundation.org/UA/IJT/Base/"
_SYSTEM = TypeName(_IJT, 1005)
_RESULT_READY, _REQUESTED = TypeName(_IJT, 1007), TypeName(_IJT, 1035)
_SYSTEM_EVENT, _ERROR_CLASS = TypeName(_IJT, 1006), TypeName(_IJT, 1063)
_BASE_EVENT = TypeName(_UA, 2041)
_FIELDS = (
    EventField(TypeName(_RESULT, 1002), "Result"),
    EventField(_BASE_EVENT, "ConditionClassId"),
    EventField(_BASE_EVENT, "Message"),
    EventField(_BASE_EVENT, "Severity"),
)
# From this severity on, an error stops the work (OPC 10000-5, 6.4.2: high severity).
_HIGH = 667
_ENABLED = "Enabled"

_log = structlog.get_logger(__name__)


class IjtTimes(Struct, frozen=True):
    """Times in seconds: interval of the polls for a result, and time limit of the search for a started joining.

    A tool that is enabled for `settled` seconds without a command was enabled by another system.
    """

    poll: float = 5.0
    search: float = 10.0
    settled: float = SETTLED_SECONDS


_TIMES = IjtTimes()


def open_ijt(
    name: str,
    settings: IjtSettings,
    station: StationPort,
    scopes: Collection[str],
    session_factory: OpenSession = open_session,
    *,
    times: IjtTimes = _TIMES,
) -> AbstractAsyncContextManager[ConnectedEquipment]:
    """Connect to a controller for the length of the block, and reconnect while it is unavailable."""
    state = ControllerState()
    tries: Counter[tuple[str, str]] = Counter()
    events = JoiningEvents(name, settings.events, station, next(iter(scopes)))
    repetition = chosen_repetition(settings, Repetition.ONCE)
    starts = StartPolicy(station, repetition)
    release = OpenRelease()

    @asynccontextmanager
    async def open_device(session: ClientSession) -> AsyncIterator[tuple[Device, DeviceEvents]]:
        system = await find_single_instance(session, _SYSTEM, Text.of("joining system"))
        methods = await find_methods(session, system)
        reporter = LateResults(name, next(iter(scopes)), station)
        acknowledges = settings.acknowledge == "own"
        transfer = await find_transfer(session, methods.owner("ResultTransfer")) if settings.files == "on" else None
        reader = ResultFileReader(session, transfer, station, tries) if settings.files == "on" else None
        files = JoiningFiles(session, reader)
        programs = JoiningPrograms(methods, settings.product_instance_uri)
        await programs.read()
        results = JoiningCollector(
            methods,
            state,
            reporter,
            RememberedText(station, memory_of(name, settings.url), LAST_NUMBER),
            RememberedText(station, memory_of(name, settings.url), LAST_STARTED),
            acknowledge=acknowledges,
            programs=programs,
            correlation=settings.correlation,
            late=LateJoinings(reporter, state.ledger, events.report_own, files.add_late),
        )
        uri = settings.product_instance_uri
        enabled = await find_enabled(session, system, uri) if settings.lock != "off" else None
        shared = SharedTool(station, f"{settings.url} {uri}".strip(), scopes, settings.type_ids)
        is_on = settings.lock == "on" or (settings.lock == "auto" and enabled is not None)
        lock = ToolLock(methods, uri, session, enabled, state, shared, is_on=is_on, settled_s=times.settled)
        await lock.resume()
        await results.restore()
        for command in await station.outstanding(scopes, settings.type_ids):
            # A result may come before its command is offered again.
            if command.phase is Phase.START:
                results.claim(command)
        tool = JoiningTool(methods, uri, programs, lock, release)
        values = {_ENABLED: enabled} if enabled is not None and lock.is_on else {}
        async with session.watch(None, _FIELDS, values) as device_events:
            yield (
                Controller(session, tool, results, state, programs, starts, times, events.report_error, files),
                readable_events(device_events, results.note_skipped),
            )

    return open_opcua_equipment(name, settings, station, scopes, session_factory, open_device, repetition)


class Controller:
    """A controller during one connection; `starts` decides whether a joining of unknown outcome is started again."""

    def __init__(
        self,
        session: ClientSession,
        tool: JoiningTool,
        results: JoiningCollector,
        state: ControllerState,
        programs: JoiningPrograms,
        starts: StartPolicy,
        times: IjtTimes,
        on_error: Callable[[str], Awaitable[None]],
        files: JoiningFiles,
    ) -> None:
        self._session = session
        self._tool = tool
        self._results = results
        self._ledger = state.ledger
        self._programs = programs
        self._starts = starts
        self._times = times
        self._on_error = on_error
        self._files = files
        self._error = ""
        self._skipped = results.skipped
        self._starting = asyncio.Lock()

    @property
    def problem(self) -> str | Text:
        """The last error of the controller until the next command, or the reason why the tool is disabled."""
        return self._error or self._tool.lock.problem

    @property
    def programs(self) -> tuple[str, ...]:
        """The joining processes and joints that the controller lists."""
        return self._programs.names

    @property
    def answer_count(self) -> int:
        """Number of answers of the controller on this connection."""
        return self._session.answer_count

    async def catch_up(self) -> None:
        """Collect the results from the time without a connection."""
        await self._results.catch_up()

    async def handle_event(self, device_event: DeviceEvent) -> None:
        """Handle a result, live or requested, an error, or a change of whether the tool is enabled."""
        if (event_type := device_event.get("EventType")) is None:
            await self._handle_change(device_event[_ENABLED])
        elif await self._session.is_a(event_type, _REQUESTED):
            await self._results.handle_requested(device_event["Result"])
        elif await self._session.is_a(event_type, _RESULT_READY):
            await self._results.handle_live(device_event["Result"])
        elif await self._session.is_a(event_type, _SYSTEM_EVENT):
            condition, severity = device_event["ConditionClassId"], device_event["Severity"]
            severe = isinstance(severity, int) and severity >= _HIGH
            if severe and condition and await self._session.is_a(condition, _ERROR_CLASS):
                self._error = device_event["Message"] or "it does not say which"
                self._results.changed.set()
                await self._on_error(self._error)

    async def _handle_change(self, enabled: object) -> None:
        # While a command is at work, the search for its result looks for a tool that another system disabled.
        if isinstance(enabled, bool) and self._ledger.current is None and not self._starting.locked():
            await self._tool.lock.handle_change(enabled=enabled)

    async def perform(self, command: Command) -> Any:
        """Execute a joining, or wait for the one that was started earlier; return the result as JSON.

        A reset makes the tool safe and starts nothing.
        """
        if command.phase is Phase.RESET:
            await self._make_safe(command)
            return {"reset": True}
        validate_command(command)
        self._error = ""
        self._results.claim(command)
        with self._occupying(command):
            result = await self._outcome(command)
            parts = self._results.parts(command)
            data = answer_data(result, parts)
            await self._files.add(command, result, parts, data)
            return data

    async def _outcome(self, command: Command) -> Result:
        """Return the result of a command; make the tool safe when its outcome is unknown."""
        try:
            if not self._results.find(command):
                await self._ensure_begun(command)
            return await self._result(command)
        except DeviceOutcomeUnknownError:
            await self._leave(command)
            raise

    async def _leave(self, command: Command) -> None:
        """Disable the tool after an unknown outcome, unless it works for another command."""
        async with self._starting:
            if await self._tool.occupant() in {None, "", command.command_id}:
                try:
                    await self._tool.make_safe(command, is_running=True)
                except Refused as refusal:
                    _log.warning("tool not made safe", command=command.command_id, reason=refusal.message)
                    self._tool.make_safe_at_rest(command, is_running=True)

    async def stop(self, command: Command) -> None:
        """Abort the joining of a command and make the tool safe, unless the tool works for another command."""
        await self._make_safe(command)

    async def rest(self) -> None:
        """Disable the tool while no command needs it, if the settings say so and no other system has done so."""
        async with self._starting:
            await self._tool.rest()

    async def wake(self) -> None:
        """Enable the tool again: another gateway began a command while this one disabled it."""
        if self._tool.lock.is_on:
            async with self._starting:
                await self._tool.lock.enable()

    async def settle(self, command: Command) -> None:
        """Acknowledge the result of a command; the rest makes a tool safe that the operator was to start."""
        if command.parameters.get("start") is False:
            self._tool.make_safe_at_rest(command, is_running=False)
        await self._results.settle(command)

    async def surrender(self, command: Command) -> None:
        """Report the joinings that came for a command that does not take them."""
        await self._results.settle_left()

    @contextmanager
    def _occupying(self, command: Command) -> Iterator[None]:
        """Reserve the tool for a command during the block; the stop of another command does not affect it."""
        self._ledger.current = command.command_id
        try:
            yield
        finally:
            self._ledger.current = None

    async def _make_safe(self, command: Command) -> None:
        async with self._starting:
            pending = await self._tool.occupant()
            # The tool itself knows best: this gateway may wait for a joining that another one has ended.
            owner = pending or self._ledger.current
            if command.phase is not Phase.RESET and owner and owner != command.command_id:
                # The tool already works for another command.
                return
            if self._ledger.current == command.command_id:
                # From here on no work waits for its result.
                self._ledger.current = None
            may_run = pending != "" or bool(self._ledger.begun)
            await self._tool.make_safe(command, is_running=may_run and not self._results.find(command))
            self._ledger.begun.discard(command.command_id)

    async def _ensure_begun(self, command: Command) -> None:
        """Start a command that was never started; search for the joining of a started one.

        When the search fails, start the command again if it may be repeated, else raise DeviceOutcomeUnknownError.
        """
        # The lock makes a stop wait until the start is complete.
        async with self._starting:
            if await self._may_start(command):
                await self._start(command)
                return
        try:
            await self._search(command)
        except DeviceOutcomeUnknownError:
            if self._starts.is_once:
                raise
            async with self._starting:
                await self._start(command)

    async def _may_start(self, command: Command) -> bool:
        """Return whether a command may be started; commit its begun mark if it must not be repeated."""
        if command.begun or command.command_id in self._ledger.begun:
            return False
        if not self._starts.is_once:
            return await self._tool.pending_command() != command.command_id
        return await self._starts.claim(command)

    async def _start(self, command: Command) -> None:
        await self._starts.permit(command)
        self._skipped = self._results.skipped
        await self._results.announce(command)
        await self._tool.prepare(command)
        self._results.expect(command)
        self._ledger.begun.add(command.command_id)
        try:
            await self._tool.start(command)
        except Refused:
            # A declined start has started nothing.
            self._ledger.begun.discard(command.command_id)
            await self._tool.release(command)
            raise

    async def _search(self, command: Command) -> None:
        """Search for the result of a started joining; return when it is found, or when the joining still runs.

        Raises DeviceOutcomeUnknownError when the controller has no result, and does not report the identifier.
        """
        end = asyncio.get_running_loop().time() + self._times.search
        while not self._results.find(command):
            # A controller that declines the question cannot be asked: its result is searched for to the end.
            if await self._tool.occupant() == command.command_id:
                return
            # The joining may have ended after the last check for results. A slow controller is searched to the end.
            await self._results.search(command)
            left = end - asyncio.get_running_loop().time()
            wait = max(0.0, min(left, self._times.poll))
            found = await self._results.changed.wait_until(lambda: self._results.find(command) is not None, wait)
            if not found and left <= 0:
                message = "the joining was started, and the controller has neither its result nor its identifier"
                raise DeviceOutcomeUnknownError(message)

    async def _result(self, command: Command) -> Result:
        """Return the result of a command; poll for it while no event reports it.

        Raises Refused when the controller reports an error, or when another system disabled the tool;
        ObsoleteCommandError when another gateway disabled it, because the command was stopped there;
        DeviceOutcomeUnknownError when its result may be one that was skipped.
        """
        lock, looks = self._tool.lock, 0
        while not (result := self._results.find(command)):
            if self._error:
                raise await self._end_after_error(command)
            if reason := self._results.unreadable:
                raise DeviceOutcomeUnknownError(
                    Text.of("the controller has reported a result that cannot be read: {reason}", reason=reason)
                )
            ended = await self._results.changed.wait_until(
                lambda: bool(self._results.find(command) or self._error or self._results.unreadable), self._times.poll
            )
            if not ended:
                await self._results.poll(command)
                if self._results.skipped > self._skipped:
                    await self._check_skipped(command)
                looks = looks + 1 if lock.is_on and await lock.is_withdrawn() else 0
            # A controller may disable the tool itself just before it reports the result: look twice.
            if looks > 1 and not self._results.find(command):
                if not await self._results.is_awaited(command):
                    raise ObsoleteCommandError
                refusal = await lock.note_foreign()
                # A joining that continues when the tool is enabled again would have no command.
                self._tool.make_safe_at_rest(command, is_running=True)
                raise refusal
        return result

    async def _check_skipped(self, command: Command) -> None:
        """Raise DeviceOutcomeUnknownError when the controller is no longer at work: the skipped result may be it."""
        if await self._tool.occupant() != command.command_id and not self._results.find(command):
            message = Text.of(
                "a result of the controller was skipped, which may be that of the command: {skip_reason}",
                skip_reason=self._results.skip_reason,
            )
            raise DeviceOutcomeUnknownError(message)

    async def _end_after_error(self, command: Command) -> Refused:
        """Abort a joining after an error of the controller: it may still turn. Return the error of its command."""
        reason = Text.of("the controller reports an error: {reason}", reason=self._error)
        try:
            async with self._starting:
                await self._tool.make_safe(command, is_running=True)
        except Refused as refusal:
            self._tool.make_safe_at_rest(command, is_running=True)
            reason = Text.of("{reason}; {refusal}", reason=reason, refusal=refusal)
        return Refused("device", reason)
