"""The device of an Open Protocol controller during one connection: a command enables its tool for one tightening."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from msgspec import Struct

from edge.equipment.device import DeviceEvent, DeviceOutcomeUnknownError
from edge.equipment.repetition import StartPolicy
from edge.equipment.result_ledger import ResultLedger
from edge.equipment.unclaimed import OwnEvents
from edge.features.openprotocol.collector import TighteningCollector
from edge.features.openprotocol.controller_opening import ControllerOpening
from edge.features.openprotocol.conversion import (
    TighteningResult,
    answer_data,
    identifier_of,
    is_batch,
    result_data,
    validate_command,
)
from edge.features.openprotocol.curves import ResultCurves
from edge.features.openprotocol.messages import ACKNOWLEDGED_UNREAD, ACKNOWLEDGEMENTS
from edge.features.openprotocol.programs import ParameterSets
from edge.features.openprotocol.protocol.mids import TOOL_LOCKED_RELAY, Mid
from edge.features.openprotocol.protocol.session import DEFAULT_TIMES, DeclinedError, OpenProtocolSession, SessionTimes
from edge.features.openprotocol.tool import TighteningTool
from edge.foundation.errors import Refused
from edge.foundation.listeners import ChangeSignal
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.sfc.signal import Phase
from edge.station.equipment import Command, StationPort
from edge.store.dead_letters import RefusedMessage


class OpenProtocolTimes(Struct, frozen=True):
    """Times of the session, the seconds between two polls for a result, and those to wait for its curves.

    `pause` are the seconds between two series of requests for missed results, `again` those until ones without an
    answer are repeated.
    """

    session: SessionTimes = DEFAULT_TIMES
    poll: float = 5.0
    curves: float = 2.0
    pause: float = 1.0
    again: float = 300.0


_log = structlog.get_logger(__name__)


class ToolEvents:
    """Reports what happens at a tool without a command as events of the station, by the settings `events`."""

    def __init__(self, name: str, place: str, type_ids: Mapping[Any, str], station: StationPort, scope: str) -> None:
        self._name = name
        self._place = place
        self._station = station
        self.report = OwnEvents(name, type_ids, station, scope).report

    async def refuse(self, reason: Text, data: str) -> None:
        """Record a message that cannot be read."""
        _log.warning("controller message unreadable", equipment=self._name, reason=str(reason))
        message = RefusedMessage(self._place, "", "", "unreadable", reason, data.encode("latin-1"))
        await self._station.record_refusal(message)

    async def report_result(self, result: TighteningResult, occurrence: str = "") -> bool:
        """Report a result of the operator's own; the same result again is the same event.

        `occurrence` distinguishes a result from others with its number and instant.
        """
        event_id = f"result {result['result']} {result.get('time')} {occurrence}".rstrip()
        return await self.report("result", result_data(result), event_id)


_LOCKED = Text.of(
    "the tool is locked at the controller: another system, or a rule of the controller, keeps it disabled"
)


class TighteningDevice:
    """A controller during one connection; `starts` decides whether a tightening of unknown outcome is started again."""

    def __init__(
        self,
        session: OpenProtocolSession,
        tool: TighteningTool,
        results: TighteningCollector,
        ledger: ResultLedger,
        curves: ResultCurves,
        events: ToolEvents,
        programs: ParameterSets,
        opening: ControllerOpening,
        *,
        correlation: str,
        starts: StartPolicy,
        times: OpenProtocolTimes,
    ) -> None:
        self._session = session
        self._tool = tool
        self._results = results
        self._ledger = ledger
        self._curves = curves
        self._events = events
        self._programs = programs
        self._opening = opening
        self._correlation = correlation
        self._starts = starts
        self._times = times
        self._alarm = ""
        self._is_locked = False
        self._identifier: str | None = None
        self._unreadable: Text | None = None
        self._selected: dict[int, int | None] = {}
        self._starting = asyncio.Lock()
        self._is_release_due = False
        self._release_changed = ChangeSignal()

    @property
    def problem(self) -> str | Text:
        """The alarm of the controller, or that it has locked the tool which a command has enabled."""
        if self._alarm:
            return Text.of("the controller reports the alarm {alarm}", alarm=self._alarm)
        return _LOCKED if self._is_locked and self._tool.is_enabled else ""

    @property
    def programs(self) -> tuple[str, ...]:
        """The parameter sets and jobs that the controller lists."""
        return self._programs.names

    async def subscribe(self) -> None:
        """Subscribe to the results; raises Refused when the controller declines."""
        await self._opening.subscribe()

    async def catch_up(self) -> None:
        """Report what an earlier connection left, and request the latest result; `run` requests those before it."""
        await self._results.settle_left()
        try:
            await self._results.catch_up()
        except Refused as refusal:
            _log.warning("latest result not taken", reason=refusal.message)
        await self._opening.subscribe_to_curves()

    async def run(self) -> None:
        """Disable the tool after results; request missed results and the rest while no command is at work.

        Raises Unavailable.
        """
        async with TaskGroup() as tasks:
            tasks.create_task(self._disable_when_due(), name="tool")
            tasks.create_task(self._fill_gaps(), name="missed results")
            tasks.create_task(self._opening.run(), name="optional exchanges")

    async def _disable_when_due(self) -> None:
        while True:
            await self._release_changed.wait_until(lambda: self._is_release_due, None)
            with self._opening.urgent():
                await self._tool.release()
            self._is_release_due = False
            self._release_changed.set()
            self._results.changed.set()

    async def _fill_gaps(self) -> None:
        # What an earlier connection left missing waits, too: live results and their acknowledgements go first.
        await self._opening.is_complete.wait()
        while True:
            if not await self._results.changed.wait_until(self._may_fill, self._times.again):
                self._results.retry()
                continue
            with self._opening.urgent():
                await self._results.fill()
            await asyncio.sleep(self._times.pause)

    def _may_fill(self) -> bool:
        is_at_work = self._ledger.current is not None or self._is_release_due or self._results.is_owing
        return self._results.is_incomplete and not is_at_work

    def handle_received(self, result: TighteningResult) -> bool:
        """Request that the tool is disabled when a result, not durable yet, answers the command at work.

        Return whether the result is not durable before its command is answered.
        """
        report = self._results.reported(result)
        if self._ledger.answers(report):
            self._demand_release()
        return self._ledger.waits(report)

    async def handle_event(self, device_event: DeviceEvent) -> None:
        """Handle a result, an alarm, a lock or a changed identifier."""
        mid = device_event["mid"]
        match mid:
            case _ if "unreadable" in device_event:
                await self._events.refuse(device_event["unreadable"], device_event["data"])
                if mid in {Mid.RESULT, Mid.SPINDLES_RESULT} and self._ledger.current in self._ledger.begun:
                    self._unreadable = device_event["unreadable"]
                    self._results.changed.set()
                if (acknowledgement := ACKNOWLEDGED_UNREAD.get(mid)) is not None:
                    await self._session.send(acknowledgement)
                return
            case Mid.TRACE:
                self._curves.handle_curve(device_event["curve"])
            case Mid.TRACE_PARAMETERS:
                self._curves.handle_plot(device_event["result"], device_event["plot"])
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
                raise Refused("unknown_type", Text.of("MID {mid:04d} was not subscribed to", mid=mid))
        if mid in ACKNOWLEDGEMENTS:
            await self._session.send(ACKNOWLEDGEMENTS[mid])
        self._results.changed.set()

    def _note_lock(self, *, is_locked: bool) -> None:
        self._is_locked = is_locked
        if self.problem == _LOCKED:
            _log.warning("tool locked at the controller", command=self._ledger.current)

    async def _handle_selection(self, mid: int, found: DeviceEvent) -> None:
        """Report a parameter set or a job that is selected at the controller while no command is at work."""
        before, self._selected[mid] = self._selected.get(mid), found["id"]
        is_ours = self._ledger.current is not None or self._starting.locked()
        if before in {None, found["id"]} or is_ours:
            return
        kind = "job" if mid == Mid.JOB_INFO else "parameter_set"
        await self._events.report(kind, {kind: found["id"]})

    async def _handle_identifier(self, identifier: str) -> None:
        is_new, self._identifier = identifier != self._identifier, identifier
        if identifier and is_new and identifier not in self._ledger.marks:
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
        self._ledger.current = command.command_id
        self._unreadable = None
        try:
            # The last result of a batch may have come before the earlier ones were searched for.
            if (command.begun and is_batch(command)) or not self._results.find(command):
                await self._ensure_begun(command)
            await self._result(command)
            results = await self._whole(command)
        except (Refused, DeviceOutcomeUnknownError):
            self._demand_release()
            raise
        else:
            # The tool is disabled before curves are awaited and missed results requested.
            self._demand_release()
        finally:
            self._ledger.current = None
            self._results.changed.set()
        curves = await self._curves.curves_of(results, self._opening.curve_kinds, self._times.curves)
        return answer_data(self._curves.with_plots(results), command, curves)

    async def _whole(self, command: Command) -> Sequence[TighteningResult]:
        """Return the results of a command; those of a batch with the bolts whose messages were lost before its last."""
        if is_batch(command) and self._results.is_incomplete:
            # Disabled first: the requests take time.
            self._demand_release()
            await self._results.fill()
        return self._results.whole(command)

    def _demand_release(self) -> None:
        """Request that the tool is disabled at once; a result does not wait until the controller has confirmed it."""
        self._is_release_due = True
        self._release_changed.set()

    async def _released(self) -> None:
        """Wait until the tool is disabled, if that is due."""
        await self._release_changed.wait_until(lambda: not self._is_release_due, None)

    async def stop(self, command: Command) -> None:
        """Disable the tool, unless it works for another command."""
        await self._make_safe(command)

    async def rest(self) -> None:
        """Disable the tool while no command needs it, if the settings say so."""
        # Without `_starting`: a selection at the controller meanwhile is not one of the gateway.
        with self._opening.urgent():
            await self._tool.rest()

    async def wake(self) -> None:
        """Enable the tool again: another gateway began a command while this one disabled it."""
        async with self._starting:
            with self._opening.urgent():
                await self._tool.enable()

    async def settle(self, command: Command) -> None:
        """Acknowledge the result of a command; return when the tool is disabled."""
        await self._results.settle(command)
        await self._released()

    async def surrender(self, command: Command) -> None:
        """Report the tightenings that came for a command that does not take them."""
        await self._results.surrender(command)

    async def _make_safe(self, command: Command) -> None:
        async with self._starting:
            owner = self._ledger.current
            if command.phase is not Phase.RESET and owner and owner != command.command_id:
                return
            # From here on no work waits for its result.
            self._ledger.current = None if owner == command.command_id else owner
            with self._opening.urgent():
                await self._tool.make_safe(command)
                if command.phase is Phase.RESET and self._alarm:
                    await self._tool.acknowledge_alarm()
            if command.phase is Phase.RESET:
                self._ledger.expected = None
            self._ledger.begun.discard(command.command_id)

    async def _ensure_begun(self, command: Command) -> None:
        """Enable the tool for a command that was never started; search for the result of a started one.

        When the search fails, start the command again if it may be repeated, else raise DeviceOutcomeUnknownError.
        """
        # The lock makes a stop wait until the start is complete.
        async with self._starting:
            if not command.begun and command.command_id not in self._ledger.begun and await self._start(command):
                return
        try:
            await self._search(command)
        except DeviceOutcomeUnknownError:
            if self._starts.is_once:
                raise
            async with self._starting:
                await self._start(command)

    async def _start(self, command: Command) -> bool:
        """Start a command ahead of the optional exchanges; return False for a command begun before."""
        with self._opening.urgent():
            return await self._start_now(command)

    async def _start_now(self, command: Command) -> bool:
        """Prepare the tool, commit the begun mark and enable the tool; return False for a command begun before."""
        await self._released()
        await self._programs.check(command)
        try:
            identifier = await self._tool.prepare(command)
        except DeclinedError:
            await self._programs.explain(command)
            raise
        if not await self._starts.claim(command):
            return False
        await self._starts.permit(command)
        self._results.expect(command, identifier)
        self._ledger.begun.add(command.command_id)
        try:
            await self._tool.enable()
        except Refused:
            # A tool that was not enabled has not worked.
            self._ledger.begun.discard(command.command_id)
            self._ledger.release(command.command_id)
            raise
        return True

    async def _search(self, command: Command) -> None:
        """Search for the result of a started command; return when it is found, or when the tool may still be at work.

        Raises DeviceOutcomeUnknownError when there is no result, and the controller does not report the identifier of
        the command: then nothing shows that the tool still works for it.
        """
        if self._correlation == "next" and not self._results.is_expected(command):
            raise DeviceOutcomeUnknownError(
                Text.of(
                    "the gateway was restarted while the tool was enabled, and a result without a mark cannot be found"
                    " again"
                )
            )
        wanted = identifier_of(command, self._correlation)
        self._results.remember(command)
        if wanted:
            # The result may come while the controller reports no identifier.
            await self._results.changed.wait_until(
                lambda: self._identifier is not None or bool(self._results.find(command)), self._times.poll
            )
        if self._results.find(command):
            # Disabled first: the requests for the earlier results of a batch take time.
            self._demand_release()
            if not is_batch(command):
                return
        await self._results.search(command)
        if self._results.find(command) or (wanted and self._identifier == wanted):
            return
        # Disabled first: the last bolt may come until then.
        self._demand_release()
        await self._released()
        await self._results.search(command)
        if self._results.find(command):
            return
        came = len(self._results.parts(command))
        known = (
            Text.of("the rest of its batch, {count} results have come", count=came) if came else Text.of("its result")
        )
        message = Text.of(
            "the tool was enabled, and the controller has neither {known} nor its identifier", known=known
        )
        raise DeviceOutcomeUnknownError(message)

    async def _result(self, command: Command) -> None:
        """Wait for the results of a command; poll for them while no message reports them.

        Raises Refused when the controller reports an alarm that stops the tool, DeviceOutcomeUnknownError when a result
        came that cannot be read.
        """
        while not self._results.find(command):
            if self._alarm:
                self._demand_release()
                raise Refused("device", self.problem)
            if self._unreadable:
                await self._read_again(command)
                continue
            came = await self._results.changed.wait_until(
                lambda: bool(self._results.find(command) or self._alarm or self._unreadable), self._times.poll
            )
            if not came:
                await self._results.catch_up()

    async def _read_again(self, command: Command) -> None:
        """Request the result that could not be read as an old one; raise DeviceOutcomeUnknownError without it."""
        self._demand_release()
        await self._results.search(command)
        if not self._results.find(command):
            message = Text.of(
                "the controller has reported a result that cannot be read: {unreadable}", unreadable=self._unreadable
            )
            raise DeviceOutcomeUnknownError(message)
