"""Machine Vision cameras (OPC 40100-1): a command executes one single job and returns its result.

The MeasId of a job is the id of its command, unless the command names another one. With it the gateway finds the result
again after a lost connection or a restart.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from edge.equipment.connected_equipment import ConnectedEquipment
from edge.equipment.device import Device, DeviceEvent, DeviceEvents, DeviceOutcomeUnknownError
from edge.equipment.identifiers import identifier, validate_identifiers
from edge.equipment.opcua import OpenSession, find_single_instance, open_opcua_equipment, open_session, readable_events
from edge.equipment.repetition import StartPolicy, chosen_repetition
from edge.equipment.result_file import ResultFileReader, find_transfer
from edge.equipment.unclaimed import LateResults, OwnEvents
from edge.features.vision.conversion import answer_data, id_of, meas_id_of, parse_result, raw_id, recipe_of
from edge.features.vision.results import VisionResults
from edge.features.vision.settings import VisionSettings
from edge.features.vision.state import IDLE, StateReader, VisionState, call_method, find_part, find_states
from edge.foundation.errors import Refused
from edge.foundation.listeners import ChangeSignal
from edge.foundation.text import Text
from edge.links.opcua import ClientSession, EventField, Node, TypeName
from edge.ports.result_trace import FILE_MEMBER
from edge.sfc.signal import Phase
from edge.station.equipment import Command, Repetition, StationPort

NAMESPACE_URI = "http://opcfoundation.org/UA/MachineVision"
READY_SECONDS = 30.0
POLL_SECONDS = 5.0

_SYSTEM = TypeName(NAMESPACE_URI, 1003)
_RESULT_READY = TypeName(NAMESPACE_URI, 1024)
_RECIPE_PREPARED = TypeName(NAMESPACE_URI, 1022)
_FIELDS = (
    *("ResultId", "JobId", "MeasId", "PartId", "ExternalRecipeId", "CreationTime"),
    *("IsPartial", "IsSimulated", "ResultState", "ResultContent"),
)
_RECIPE_FIELDS = ("ExternalId", "InternalId")
_STATE, _MODE = "VisionStateMachine", "AutomaticModeStateMachine"
_IDENTIFIERS = ("part_id", "meas_id")
# The vendor defines the causes of Reset, Stop and Abort; 0 is none of them.
_CAUSE = (0, "the station asked for it")
_JOBS_LIMIT = 1000
_NOT_ENDED = Text.of("the camera did not end its job")
_LOST = "the job was started, and the camera neither is at it nor has its result"
_SKIPPED = "a result that {reason} was skipped: it may be that of this command"
_MIRROR_SECONDS = 0.05
_UNTIL_READY = -1.0
# The seconds to answer a stop, and then to end the job; those for which a ready camera may still report its result.
_STOP_SECONDS, _END_SECONDS, _LOST_SECONDS = 10.0, 3.0, 30.0


def open_vision(
    name: str,
    settings: VisionSettings,
    station: StationPort,
    scopes: Collection[str],
    session_factory: OpenSession = open_session,
    *,
    ready_seconds: float = READY_SECONDS,
    poll_seconds: float = POLL_SECONDS,
) -> AbstractAsyncContextManager[ConnectedEquipment]:
    """Connect to a camera for the length of the block, and reconnect while it is unavailable.

    `ready_seconds` is the time limit for the camera to become ready, or to prepare a recipe. `poll_seconds` is the
    interval of the polls for a result.
    """
    jobs: dict[str, str] = {}
    tries: Counter[tuple[str, str]] = Counter()
    repetition = chosen_repetition(settings, Repetition.REPEATABLE)
    starts = StartPolicy(station, repetition)
    reporter = LateResults(name, next(iter(scopes)), station)
    events = OwnEvents(name, settings.events, station, next(iter(scopes)))

    @asynccontextmanager
    async def open_device(session: ClientSession) -> AsyncIterator[tuple[Device, DeviceEvents]]:
        system = await find_single_instance(session, _SYSTEM, Text.of("vision system"))
        parts = await session.children(system)
        machine = await session.children(find_part(parts, _STATE))
        automatic = find_part(machine, _MODE)
        states = await find_states(session, {_STATE: parts[_STATE], _MODE: automatic})
        # Each of the two event types defines these fields itself; none of the fields belongs to a base type.
        fields = [EventField(_RESULT_READY, field) for field in _FIELDS]
        fields += [EventField(_RECIPE_PREPARED, field) for field in _RECIPE_FIELDS]
        async with session.watch(None, fields, states.variables) as device_events:
            transfer = await find_transfer(session, parts.get("ResultManagement")) if settings.files == "on" else None
            files = ResultFileReader(session, transfer, station, tries) if settings.files == "on" else None
            results = VisionResults(session, parts, jobs, reporter, events, files)
            camera = Camera(
                session,
                parts,
                automatic,
                states,
                jobs,
                results,
                events,
                starts,
                files,
                ready_seconds=ready_seconds,
                poll_seconds=poll_seconds,
            )
            yield camera, readable_events(device_events, camera.note_skipped)

    return open_opcua_equipment(name, settings, station, scopes, session_factory, open_device, repetition)


class Camera:
    """A camera during one connection, with a mirror of its states; `jobs`, by command, keeps the JobIds beyond it.

    When `starts` permits each start once, the outcome of a started job is unknown when its result cannot be found.
    With `files`, the file of a result is fetched before the command is answered.
    """

    def __init__(
        self,
        session: ClientSession,
        parts: Mapping[str, Node],
        automatic: Node,
        states: StateReader,
        jobs: dict[str, str],
        results: VisionResults,
        events: OwnEvents,
        starts: StartPolicy,
        files: ResultFileReader | None = None,
        *,
        ready_seconds: float = READY_SECONDS,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._poll_seconds = poll_seconds
        self._results = results
        self._events = events
        self._files = files
        self._starts = starts
        self._session = session
        self._parts = parts
        self._automatic = automatic
        self._reader = states
        self._jobs = jobs
        self._ready_seconds = ready_seconds
        self._states: dict[str, VisionState] = {}
        self._prepared: set[str] = set()
        self._changed = ChangeSignal()
        self._starting = asyncio.Lock()
        self._started: set[str] = set()

    @property
    def problem(self) -> str | Text:
        """Message about a state in which the camera accepts no job; empty in any other state."""
        return Text.of("the camera is in the state {state}", state=self._state.title) if self._state in IDLE else ""

    @property
    def answer_count(self) -> int:
        """Number of answers of the camera on this connection."""
        return self._session.answer_count

    async def catch_up(self) -> None:
        """Return at once: each command searches for its own result."""

    async def handle_event(self, device_event: DeviceEvent) -> None:
        """Mirror a state, record a prepared recipe, or keep a result until its command takes it."""
        if (event_type := device_event.get("EventType")) is None:
            before = self._state
            for name, value in device_event.items():
                self._states[name] = await self._reader.state(value)
            if self._state in IDLE and self._state is not before:
                await self._events.report("error", {"state": self._state.title})
        elif await self._session.is_a(event_type, _RESULT_READY):
            await self._handle_result(device_event)
        elif await self._session.is_a(event_type, _RECIPE_PREPARED):
            ids = [id_of(device_event, field) for field in _RECIPE_FIELDS]
            self._prepared |= {text for text in ids if text}
        self._changed.set()

    async def _handle_result(self, device_event: DeviceEvent) -> None:
        if not device_event["IsPartial"]:
            try:
                result = parse_result(device_event)
            except Refused as refusal:
                if not self._results.may_be_of_work(device_event):
                    raise
                await self.note_skipped(refusal)
                return
            # Wait for a start in progress: the JobId is known only after the start.
            async with self._starting:
                pass
            await self._results.handle(result)

    async def note_skipped(self, refusal: Refused) -> None:
        """Record a result that cannot be read: the command at work may wait for it."""
        await self._results.note_skipped(refusal)
        self._changed.set()

    async def perform(self, command: Command) -> Any:
        """Execute a job, unless the camera has its result or already executes it; return the result as JSON.

        A reset stops the current job and starts none.
        """
        if command.phase is Phase.RESET:
            if await self._is_busy():
                await self._stop_job()
            return {"reset": True}
        validate_identifiers(command, _IDENTIFIERS)
        found = await self._results.find(command)
        if found is None and not await self._is_running(command) and await self._is_busy():
            # A killed gateway may have left this job running without its JobId: wait for the end of the job.
            await self._wait_until(_NOT_ENDED, lambda: not self._executes, seconds=None)
            found = await self._results.find(command)
        if found is None and not await self._is_running(command):
            if self._starts.is_once and command.begun:
                raise DeviceOutcomeUnknownError(_LOST)
            await self._get_ready()
            await self._prepare(command)
            # The lock makes a stop wait until the JobId is known.
            async with self._starting:
                if not await self._starts.claim(command):
                    raise DeviceOutcomeUnknownError(_LOST)
                await self._start(command)
        result = found or await self._result(command)
        data = answer_data(result)
        if self._files is None or not await self._results.has_file(result, meas_id_of(command)):
            return data
        result_id = result["ResultId"]
        return {**data, FILE_MEMBER: await self._files.read(command.command_id, result_id["Id"], {"Id": result_id})}

    async def stop(self, command: Command) -> None:
        """Stop the job of a command if the camera executes it; report its result as late if the job has ended."""
        # Wait for a start in progress: the job can be stopped only after its start.
        async with self._starting:
            pass
        if await self._is_running(command):
            await self._stop_job()
        await self._results.report_late(command)

    async def _stop_job(self) -> None:
        """Stop the current job; abort it if Stop is missing, declined, not answered or without effect.

        Raises Refused when the camera still executes it.
        """
        methods = await self._session.children(self._automatic)
        reason = Text.of("the camera has no method to stop its job")
        for name in ("Stop", "Abort"):
            if name in methods:
                try:
                    async with asyncio.timeout(_STOP_SECONDS):
                        await self._call(self._automatic, name, *_CAUSE)
                    await self._wait_until(_NOT_ENDED, lambda: not self._executes, seconds=_END_SECONDS)
                except Refused as refusal:
                    reason = refusal.text
                except TimeoutError:
                    reason = Text.of("{name}: no answer within {seconds:g} s", name=name, seconds=_STOP_SECONDS)
                else:
                    return
        # The job may have ended in the meantime.
        if await self._is_busy():
            raise Refused("device", Text.of("the job may still run: {reason}", reason=reason))

    async def settle(self, command: Command) -> None:
        """Forget the JobId of an answered command."""
        self._forget(command.command_id)

    def _forget(self, command_id: str) -> None:
        self._jobs.pop(command_id, None)
        self._started.discard(command_id)

    async def _get_ready(self) -> None:
        """Switch the camera to the automatic mode, also out of an error."""
        machine = self._parts[_STATE]
        await self._synchronize_state()
        if self._state in IDLE:
            await self._call(machine, "Reset", *_CAUSE)
            await self._wait_until(Text.of("the camera did not leave its error"), lambda: self._state not in IDLE)
        if self._state is VisionState.PREOPERATIONAL:
            await self._call(machine, "SelectModeAutomatic")
        problem = Text.of("the camera did not become Operational")
        await self._wait_until(problem, lambda: self._state is VisionState.OPERATIONAL)

    async def _synchronize_state(self) -> None:
        """Wait until the mirror shows the current state: the camera reports a change with a delay."""
        try:
            async with asyncio.timeout(self._ready_seconds):
                await self._mirror(_STATE)
                if self._state is VisionState.OPERATIONAL:
                    await self._mirror(_MODE)
        except TimeoutError:
            raise Refused("device", "the camera does not report the changes of its state") from None

    async def _mirror(self, machine: str) -> None:
        variable = self._reader.variables[machine]
        # A change may be reported late, or not at all when another follows at once: no report is surely the last.
        while await self._reader.state(await self._session.read(variable)) is not self._states.get(machine):  # noqa: ASYNC110
            await asyncio.sleep(_MIRROR_SECONDS)

    async def _prepare(self, command: Command) -> None:
        if recipe := recipe_of(command):
            self._prepared.clear()
            match await self._call(find_part(self._parts, "RecipeManagement"), "PrepareRecipe", recipe):
                case [_, True]:
                    pass
                case [internal, _]:
                    await self._recipe_prepared({recipe["Id"], (internal or {}).get("Id")})
                case _:
                    raise Refused("device", "PrepareRecipe: what the camera answers is not what OPC 40100-1 says")
        problem = Text.of("the camera did not become Ready")
        await self._wait_until(problem, lambda: self._states.get(_MODE) is VisionState.READY)

    async def _recipe_prepared(self, ids: set[str | None]) -> None:
        """Wait until the camera reports a recipe as prepared: before that it may be Ready with the previous recipe."""
        named = ids - {None, ""}
        names = ", ".join(sorted(filter(None, named)))
        problem = Text.of("the camera did not report the recipe {recipe} as prepared", recipe=names)
        await self._wait_until(problem, lambda: bool(named & self._prepared) or self._state in IDLE)
        if self._state in IDLE:
            raise self._failed()

    async def _start(self, command: Command) -> None:
        part = {"Id": identifier(command, "part_id")}
        arguments = ({"Id": meas_id_of(command)}, part, recipe_of(command))
        await self._starts.permit(command)
        self._results.expect(command)
        outputs = await self._call(self._automatic, "StartSingleJob", *arguments)
        # Without a JobId, the MeasId says which result is that of the job.
        self._jobs[command.command_id] = (raw_id(outputs[0]) if outputs else None) or ""
        self._started.add(command.command_id)
        if len(self._jobs) > _JOBS_LIMIT:
            self._forget(next(iter(self._jobs)))

    async def _result(self, command: Command) -> Mapping[str, Any]:
        command_id, results = command.command_id, self._results

        def has_ended() -> bool:
            return command_id in results.kept or self._state in IDLE

        def may_be_skipped() -> bool:
            return results.skipped > 0 and not self._executes

        time = asyncio.get_running_loop().time
        idle_since = time()
        while not await self._changed.wait_until(lambda: has_ended() or may_be_skipped(), self._poll_seconds):
            # The event of its result may be lost.
            if not self._executes and (found := await results.find(command)) is not None:
                return found
            idle_since = time() if self._executes else idle_since
            if time() - idle_since >= _LOST_SECONDS:
                raise DeviceOutcomeUnknownError(_LOST)
        # The result that was skipped may be that of another job: its own one may follow.
        await self._changed.wait_until(has_ended, self._poll_seconds)
        if command_id not in results.kept:
            if self._state in IDLE:
                raise self._failed()
            if (found := await results.find(command)) is not None:
                return found
            raise DeviceOutcomeUnknownError(Text.of(_SKIPPED, reason=results.skip_reason))
        result = results.kept.pop(command_id)
        if (of := id_of(result, "MeasId")) not in {None, "", meas_id_of(command)}:
            raise Refused(
                "device",
                Text.of("the result of the job {id} is one of another MeasId: {of}", id=id_of(result, "JobId"), of=of),
            )
        try:
            return await results.fetch_content(result)
        except Refused as refusal:
            if refusal.kind == "too_large":
                await results.note_skipped(refusal, id_of(result, "ResultId") or "")
                raise DeviceOutcomeUnknownError(Text.of(_SKIPPED, reason=results.skip_reason)) from refusal
            raise

    async def _is_running(self, command: Command) -> bool:
        if command.command_id not in self._jobs:
            return False
        if command.command_id in self._started:
            return command.command_id not in self._results.kept
        return await self._is_busy()

    async def _is_busy(self) -> bool:
        await self._synchronize_state()
        return self._executes

    @property
    def _executes(self) -> bool:
        """Whether the camera executes a job. Outside the automatic mode, its mode variable keeps the last value."""
        return self._state is VisionState.OPERATIONAL and self._states.get(_MODE) is VisionState.SINGLE_EXECUTION

    async def _call(self, owner: Node, name: str, *arguments: Any) -> list[Any]:
        return await call_method(self._session, owner, name, *arguments)

    @property
    def _state(self) -> VisionState:
        return self._states.get(_STATE, VisionState.UNKNOWN)

    def _failed(self) -> Refused:
        return Refused("device", Text.of("the camera went into the state {title}", title=self._state.title))

    async def _wait_until(
        self, problem: Text, condition: Callable[[], bool], seconds: float | None = _UNTIL_READY
    ) -> None:
        """Wait for a condition, at most `seconds`: `ready_seconds` by default, without a limit for None.

        Raises Refused with the problem when the time is over.
        """
        limit = self._ready_seconds if seconds == _UNTIL_READY else seconds
        if not await self._changed.wait_until(condition, limit):
            states = ", ".join(state.title for state in self._states.values())
            raise Refused("device", Text.of("{problem}; it is {states}", problem=problem, states=states))
