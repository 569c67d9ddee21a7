"""Tightening controllers with Open Protocol: a command enables the tool for one tightening and returns its result.

The operator triggers the tool. The identifier (VIN) of the result has a mark of the command: with it the gateway finds
the result again after a lost connection or a restart. By default, a tool is never enabled again for a command whose
result cannot be found: its outcome is unknown.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any

import structlog
from msgspec import Struct

from edge.errors import Refused
from edge.links.openprotocol_mids import TOOL_LOCKED_RELAY, Mid
from edge.links.openprotocol_session import DEFAULT_TIMES, OpenProtocolSession, SessionTimes, open_openprotocol
from edge.sfc.signal import Phase
from edge.southbound.connected_equipment import ConnectedEquipment, open_connected
from edge.southbound.device import Device, DeviceEvent, DeviceEvents, DeviceOutcomeUnknownError
from edge.southbound.late_result import LateResults
from edge.southbound.openprotocol_collector import TighteningCollector, ToolState
from edge.southbound.openprotocol_conversion import (
    TighteningResult,
    answer_data,
    identifier_of,
    is_batch,
    validate_command,
)
from edge.southbound.openprotocol_events import ToolEvents
from edge.southbound.openprotocol_makes import make_of
from edge.southbound.openprotocol_messages import (
    ACKNOWLEDGED_UNREAD,
    ACKNOWLEDGEMENTS,
    described,
    device_events,
    request_reporter,
)
from edge.southbound.openprotocol_programs import ParameterSets
from edge.southbound.openprotocol_settings import OpenProtocolSettings, address_of
from edge.southbound.openprotocol_subscriptions import subscribe, subscribe_to_curves, subscribe_to_lock
from edge.southbound.openprotocol_tool import TighteningTool
from edge.southbound.repetition import StartPolicy, chosen_repetition
from edge.station.equipment import Command, Repetition, StationPort

POLL_SECONDS = 5.0

_LOCKED = "the tool is locked at the controller: another system, or a rule of the controller, keeps it disabled"

_log = structlog.get_logger(__name__)


class OpenProtocolTimes(Struct, frozen=True):
    """Times of the session, the seconds between two polls for a result, and those to wait for its curves."""

    session: SessionTimes = DEFAULT_TIMES
    poll: float = POLL_SECONDS
    curves: float = 2.0


_TIMES = OpenProtocolTimes()


def _local_now() -> datetime:
    return datetime.now().astimezone().replace(microsecond=0, tzinfo=None)


def open_openprotocol_equipment(
    name: str,
    settings: OpenProtocolSettings,
    station: StationPort,
    scopes: Collection[str],
    *,
    times: OpenProtocolTimes = _TIMES,
    now: Callable[[], datetime] = _local_now,
) -> AbstractAsyncContextManager[ConnectedEquipment]:
    """Connect to a controller for the length of the block, and reconnect while it is unavailable."""
    state = ToolState()
    repetition = chosen_repetition(settings, Repetition.ONCE)
    host, port = address_of(settings)
    events = ToolEvents(name, settings.url, settings.events, station, next(iter(scopes)))
    reporter = LateResults(name, next(iter(scopes)), station)

    @asynccontextmanager
    async def connect() -> AsyncIterator[tuple[Device, DeviceEvents]]:
        for command in await station.outstanding(scopes, settings.type_ids):
            # A result may come before its command is offered again.
            if command.phase is Phase.START:
                state.remember(command, settings.correlation)
        async with open_openprotocol(
            host,
            port,
            times=times.session,
            link_layer=settings.link_layer == "auto",
            on_request=request_reporter(station),
        ) as session:
            make, has_several = make_of(session.controller), settings.spindles == "several"
            session.set_keep_alive(make.keep_alive)
            tool = TighteningTool(session, correlation=settings.correlation, locks=settings.lock == "on")
            results = TighteningCollector(
                session,
                state,
                reporter,
                correlation=settings.correlation,
                counts=make.counts_results and not has_several,
                acknowledgement=Mid.SPINDLES_ACKNOWLEDGE if has_several else Mid.RESULT_ACKNOWLEDGE,
                on_own=events.report_result,
            )
            await subscribe(session, make, settings.events, several_spindles=has_several)
            if make.reports_lock and settings.lock == "on":
                await subscribe_to_lock(session)
            curves = await subscribe_to_curves(session) if settings.traces == "on" else 0
            programs = ParameterSets(session)
            await programs.read()
            if settings.clock == "set":
                await tool.set_clock(now())
            known = described(session) | {"tool": await tool.read()}
            _log.info("controller identified", equipment=name, make=make.name, **known)
            device = TighteningDevice(
                session,
                tool,
                results,
                state,
                events,
                programs,
                correlation=settings.correlation,
                starts=StartPolicy(station, repetition),
                times=times,
                curve_kinds=curves,
            )
            yield device, device_events(session)

    return open_connected(name, settings.url, settings.type_ids, station, scopes, connect, repetition)


class TighteningDevice:
    """A controller during one connection; `starts` decides whether a tightening of unknown outcome is started again."""

    def __init__(
        self,
        session: OpenProtocolSession,
        tool: TighteningTool,
        results: TighteningCollector,
        state: ToolState,
        events: ToolEvents,
        programs: ParameterSets,
        *,
        correlation: str,
        starts: StartPolicy,
        times: OpenProtocolTimes,
        curve_kinds: int,
    ) -> None:
        self._session = session
        self._tool = tool
        self._results = results
        self._state = state
        self._events = events
        self._programs = programs
        self._correlation = correlation
        self._starts = starts
        self._times = times
        self._curve_kinds = curve_kinds
        self._alarm = ""
        self._is_locked = False
        self._identifier: str | None = None
        self._selected: dict[int, int | None] = {}
        self._starting = asyncio.Lock()

    @property
    def problem(self) -> str:
        """The alarm of the controller, or that it has locked the tool which a command has enabled."""
        if self._alarm:
            return f"the controller reports the alarm {self._alarm}"
        return _LOCKED if self._is_locked and self._tool.is_enabled else ""

    @property
    def programs(self) -> tuple[str, ...]:
        """The parameter sets and jobs that the controller lists."""
        return self._programs.names

    async def catch_up(self) -> None:
        """Request the results from the time without a connection."""
        await self._results.catch_up()

    async def handle_event(self, device_event: DeviceEvent) -> None:
        """Handle a result, an alarm, a lock or a changed identifier."""
        mid = device_event["mid"]
        match mid:
            case _ if "unreadable" in device_event:
                await self._events.refuse(device_event["unreadable"], device_event["data"])
                if (acknowledgement := ACKNOWLEDGED_UNREAD.get(mid)) is not None:
                    await self._session.send(acknowledgement)
                return
            case Mid.TRACE:
                self._results.handle_curve(device_event["curve"])
            case Mid.TRACE_PARAMETERS:
                self._results.handle_plot(device_event["result"], device_event["plot"])
            case Mid.PARAMETER_SET_SELECTED | Mid.JOB_INFO:
                await self._handle_selection(mid, device_event)
            case Mid.RESULT | Mid.SPINDLES_RESULT:
                await self._results.handle_live(device_event)
            case Mid.IDENTIFIER_CHANGED:
                await self._handle_identifier(device_event["identifier"])
            case Mid.RELAY:
                if device_event["relay"] == TOOL_LOCKED_RELAY:
                    self._note_lock(is_locked=bool(device_event["active"]))
            case Mid.ALARM:
                await self._handle_alarm(device_event)
            case Mid.ALARM_STATUS:
                self._alarm = device_event["code"] if device_event["active"] else ""
            case Mid.ALARM_ACKNOWLEDGED:
                self._alarm = ""
            case _:
                raise Refused("unknown_type", f"MID {mid:04d} was not subscribed to")
        if mid in ACKNOWLEDGEMENTS:
            await self._session.send(ACKNOWLEDGEMENTS[mid])
        self._results.changed.set()

    def _note_lock(self, *, is_locked: bool) -> None:
        self._is_locked = is_locked
        if self.problem == _LOCKED:
            _log.warning("tool locked at the controller", command=self._state.current)

    async def _handle_selection(self, mid: int, found: DeviceEvent) -> None:
        """Report a parameter set or a job that somebody selects at the controller while no command is at work."""
        before, self._selected[mid] = self._selected.get(mid), found["id"]
        is_ours = self._state.current is not None or self._starting.locked()
        if before in {None, found["id"]} or is_ours:
            return
        kind = "job" if mid == Mid.JOB_INFO else "parameter_set"
        await self._events.report(kind, {kind: found["id"]})

    async def _handle_identifier(self, identifier: str) -> None:
        is_new = identifier != self._identifier
        self._identifier = identifier
        if identifier and is_new and identifier not in self._state.marks:
            await self._events.report("identifier", {"identifier": identifier})

    async def _handle_alarm(self, alarm: Mapping[str, Any]) -> None:
        code = alarm["code"] or "without a code"
        stops = not (alarm["controller_ready"] and alarm["tool_ready"])
        _log.warning("controller alarm", code=code, stops=stops)
        if stops:
            self._alarm = code
        await self._events.report("alarm", {"code": code, "tool_ready": bool(alarm["tool_ready"])})

    async def perform(self, command: Command) -> Any:
        """Enable the tool for a tightening, or wait for the one that was started earlier; return its result as JSON.

        A reset disables the tool and starts nothing.
        """
        if command.phase is Phase.RESET:
            await self._make_safe(command)
            return {"reset": True}
        validate_command(command, self._correlation)
        self._state.current = command.command_id
        try:
            # The last result of a batch may have come before the earlier ones were searched for.
            if (command.begun and is_batch(command)) or not self._results.find(command):
                await self._ensure_begun(command)
            results = await self._result(command)
        finally:
            self._state.current = None
        await self._tool.release()
        curves = await self._results.curves_of(results, self._curve_kinds, self._times.curves)
        return answer_data(self._results.with_plots(results), command, curves)

    async def stop(self, command: Command) -> None:
        """Disable the tool, unless it works for another command."""
        await self._make_safe(command)

    async def rest(self) -> None:
        """Disable the tool while no command needs it, if the settings say so."""
        # Without the lock: what somebody selects meanwhile is not ours.
        await self._tool.disable()

    async def wake(self) -> None:
        """Enable the tool again: another gateway began a command while this one disabled it."""
        async with self._starting:
            await self._tool.enable()

    async def settle(self, command: Command) -> None:
        """Acknowledge the result of a command."""
        await self._results.settle(command)

    async def _make_safe(self, command: Command) -> None:
        async with self._starting:
            owner = self._state.current
            if command.phase is not Phase.RESET and owner and owner != command.command_id:
                return
            # From here on no work waits for its result.
            self._state.current = None if owner == command.command_id else owner
            await self._tool.make_safe(command)
            if command.phase is Phase.RESET and self._alarm:
                await self._tool.acknowledge_alarm()
            await self._results.surrender(command)
            self._state.begun.discard(command.command_id)

    async def _ensure_begun(self, command: Command) -> None:
        """Enable the tool for a command that was never started; search for the result of a started one.

        When the search fails, start the command again if it may be repeated, else raise DeviceOutcomeUnknownError.
        """
        # The lock makes a stop wait until the start is complete.
        async with self._starting:
            if not command.begun and command.command_id not in self._state.begun and await self._start(command):
                return
        try:
            await self._search(command)
        except DeviceOutcomeUnknownError:
            if self._starts.is_once:
                raise
            async with self._starting:
                await self._start(command)

    async def _start(self, command: Command) -> bool:
        """Prepare the tool, commit the begun mark and enable the tool; return False for a command begun before."""
        await self._programs.check(command)
        await self._tool.prepare(command)
        if not await self._starts.claim(command):
            return False
        self._starts.count(command)
        self._results.expect(command)
        self._state.begun.add(command.command_id)
        try:
            await self._tool.enable()
        except Refused:
            # A tool that was not enabled has not worked.
            self._state.begun.discard(command.command_id)
            raise
        return True

    async def _search(self, command: Command) -> None:
        """Search for the result of a started command; return when it is found, or when the tool may still be at work.

        Raises DeviceOutcomeUnknownError when there is no result and the controller has another identifier.
        """
        self._state.remember(command, self._correlation)
        await self._results.changed.wait_until(lambda: self._identifier is not None, self._times.poll)
        await self._results.search(command)
        wanted = identifier_of(command, self._correlation)
        if self._results.find(command) or self._identifier in {None, wanted}:
            return
        came = len(self._results.parts(command))
        await self._results.surrender(command)
        known = f"the rest of its batch, {came} results have come" if came else "its result"
        message = f"the tool was enabled, and the controller has neither {known} nor its identifier"
        raise DeviceOutcomeUnknownError(message)

    async def _result(self, command: Command) -> Sequence[TighteningResult]:
        """Return the results of a command; poll for them while no message reports them.

        Raises Refused when the controller reports an alarm that stops the tool.
        """
        while not (results := self._results.find(command)):
            if self._alarm:
                await self._tool.release()
                await self._results.surrender(command)
                raise Refused("device", self.problem)
            came = await self._results.changed.wait_until(
                lambda: bool(self._results.find(command) or self._alarm), self._times.poll
            )
            if not came:
                await self._results.catch_up()
        return results
