"""Machine Vision cameras (OPC 40100-1): a command is a single job, its answer the result of that job.

A job bears the id of its command as its MeasId, unless the command names one. By that its result is found again after a
lost connection, also by a gateway that was started anew.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from edge.config import OpcuaEquipmentSettings
from edge.errors import Refused
from edge.links.opcua import EventField, Node, Session, TypeName
from edge.southbound.connected import ConnectedEquipment, Device, Happening, Happenings
from edge.southbound.opcua import open_opcua_equipment
from edge.station.equipment import Command, Station

NAMESPACE_URI = "http://opcfoundation.org/UA/MachineVision"
READY_SECONDS = 30.0
"""How long a camera may take to become ready, a recipe to be prepared."""

_SYSTEM = TypeName(NAMESPACE_URI, 1003)
_RESULT_READY = TypeName(NAMESPACE_URI, 1024)
_FIELDS = (
    "ResultId",
    "JobId",
    "IsPartial",
    "IsSimulated",
    "ResultState",
    "MeasId",
    "PartId",
    "ExternalRecipeId",
    "CreationTime",
    "ResultContent",
)
_STATE, _MODE = "VisionStateMachine", "AutomaticModeStateMachine"
_EXECUTING = "SingleExecution"
# The causes of Reset, Stop and Abort are the manufacturer's; 0 is none of them.
_CAUSE = (0, "the station asked for it")
_RESULT_STATES = {0: "Undefined", 1: "Completed", 2: "Processing", 3: "Aborted", 4: "Failed"}
_COMPLETED = 1
_MOST_KEPT = 1000
_MIRROR_SECONDS = 0.05


def open_vision(
    name: str, settings: OpcuaEquipmentSettings, station: Station, scopes: Collection[str]
) -> AbstractAsyncContextManager[ConnectedEquipment]:
    """Connect to a camera for the length of the block; one that is not there yet is waited for."""
    jobs: dict[str, str] = {}

    @asynccontextmanager
    async def opening(session: Session) -> AsyncIterator[tuple[Device, Happenings]]:
        (system,) = _only(await session.instances(_SYSTEM), session.url)
        parts = await session.children(system)
        machine = await session.children(parts[_STATE])
        automatic = await session.children(machine[_MODE])
        values = {_STATE: machine["CurrentState"], _MODE: automatic["CurrentState"]}
        # The fields of a result are defined by the event type itself, as are those of its base by their own.
        fields = [EventField(_RESULT_READY, field) for field in _FIELDS]
        async with session.watch(None, fields, values) as happenings:
            yield Camera(session, parts, machine[_MODE], jobs), happenings

    return open_opcua_equipment(name, settings, station, scopes, opening)


def _only(systems: list[Node], url: str) -> list[Node]:
    if len(systems) != 1:
        found = ", ".join(each.path for each in systems) or "none"
        raise Refused("unknown_node", f"{url} should have one vision system, and has {found}")
    return systems


class Camera:
    """A camera on one connection, its states mirrored; `jobs` are its JobIds by command, kept beyond it."""

    def __init__(self, session: Session, parts: Mapping[str, Node], automatic: Node, jobs: dict[str, str]) -> None:
        self._session = session
        self._parts = parts
        self._automatic = automatic
        self._jobs = jobs
        self._states: dict[str, str] = {}
        self._results: dict[str, Mapping[str, Any]] = {}
        self._changed = asyncio.Event()
        self._starting = asyncio.Lock()
        self._started: set[str] = set()

    async def take(self, happening: Happening) -> None:
        """Mirror a state, or keep a result until its job asks for it."""
        if (event_type := happening.get("EventType")) is None:
            self._states |= {name: text or "" for name, text in happening.items()}
        elif await self._session.is_a(event_type, _RESULT_READY) and not happening["IsPartial"]:
            self._results[happening["JobId"]["Id"]] = happening
            if len(self._results) > _MOST_KEPT:
                del self._results[next(iter(self._results))]
        self._changed.set()

    async def perform(self, command: Command) -> Any:
        """Do a job, unless the camera has its result already or is at it; give the result as JSON."""
        found = await self._found(command)
        if found is None and not await self._is_at(command) and await self._is_busy():
            # A gateway that was killed in mid-command has not left us the JobId: it may be this very job.
            await self._until("end its job", lambda: self._states[_MODE] != _EXECUTING, seconds=None)
            found = await self._found(command)
        if found is None and not await self._is_at(command):
            await self._get_ready()
            await self._prepare(command)
            # Who stops a job that is just being started waits until it has its id.
            async with self._starting:
                await self._start(command)
        return _data(found or await self._result(command))

    async def stop(self, command: Command) -> None:
        """Stop the job of a command, if the camera is at it."""
        async with self._starting:
            is_at = await self._is_at(command)
        if is_at:
            methods = await self._session.children(self._automatic)
            name = "Stop" if "Stop" in methods else "Abort"
            (error,) = await self._session.call(self._automatic, name, *_CAUSE)
            _check(name, error)

    async def settled(self, command: Command) -> None:
        """Forget the JobId of a command that is answered."""
        self._forget(command.command_id)

    def _forget(self, command_id: str) -> None:
        self._started.discard(self._jobs.pop(command_id, ""))

    async def _get_ready(self) -> None:
        """Bring the camera into the automatic mode, out of an error too."""
        machine = self._parts[_STATE]
        await self._catch_up()
        if self._state in {"Error", "Halted"}:
            _check("Reset", *await self._session.call(machine, "Reset", *_CAUSE))
            await self._until("leave its error", lambda: self._state not in {"Error", "Halted"})
        if self._state == "Preoperational":
            _check("SelectModeAutomatic", *await self._session.call(machine, "SelectModeAutomatic"))
        await self._until("become Operational", lambda: self._state == "Operational")

    async def _catch_up(self) -> None:
        """Wait until our mirror shows the present state: what a camera tells comes a moment after it is so."""
        current = (await self._session.children(self._parts[_STATE]))["CurrentState"]
        try:
            async with asyncio.timeout(READY_SECONDS):
                # A change may be told late, or not at all when another follows at once: none says that it is the last.
                while await self._session.read(current) != self._state:  # noqa: ASYNC110
                    await asyncio.sleep(_MIRROR_SECONDS)
        except TimeoutError:
            raise Refused("device", "the camera does not tell the changes of its state") from None

    async def _prepare(self, command: Command) -> None:
        if recipe := _recipe(command):
            # A recipe that is prepared already is so at once; one that takes its time ends in Ready, too.
            *_, error = await self._session.call(self._parts["RecipeManagement"], "PrepareRecipe", recipe)
            _check("PrepareRecipe", error)
        await self._until("become Ready", lambda: self._states.get(_MODE) == "Ready")

    async def _start(self, command: Command) -> None:
        part = {"Id": str(command.parameters.get("part_id", ""))}
        arguments = ({"Id": _meas_id(command)}, part, _recipe(command))
        job, error = await self._session.call(self._automatic, "StartSingleJob", *arguments)
        _check("StartSingleJob", error)
        self._jobs[command.command_id] = job["Id"]
        self._started.add(job["Id"])
        if len(self._jobs) > _MOST_KEPT:
            self._forget(next(iter(self._jobs)))

    async def _result(self, command: Command) -> Mapping[str, Any]:
        job_id = self._jobs[command.command_id]
        await self._until("end its job", lambda: job_id in self._results or self._state == "Error", seconds=None)
        if job_id not in self._results:
            raise Refused("device", "the camera went into the state Error")
        result = self._results.pop(job_id)
        return result if result["ResultContent"] is not None else await self._whole(result)

    async def _whole(self, told: Mapping[str, Any]) -> Mapping[str, Any]:
        """Get a result whose event did not bring its content."""
        results = self._parts["ResultManagement"]
        handle, result, error = await self._session.call(results, "GetResultById", told["ResultId"], 1000)
        _check("GetResultById", error)
        if handle and "ReleaseResultHandle" in await self._session.children(results):
            await self._session.call(results, "ReleaseResultHandle", handle)
        return {**told, **result}

    async def _found(self, command: Command) -> Mapping[str, Any] | None:
        """Ask for the result of a command that was begun before; not every camera can tell."""
        results = self._parts.get("ResultManagement")
        if results is None or "GetResultListFiltered" not in await self._session.children(results):
            return None
        meas_id = _meas_id(command)
        nothing = (None,) * 7
        arguments = (0, {"Id": meas_id}, *nothing, 1, 0, 1000)
        try:
            *_, handle, found, error = await self._session.call(results, "GetResultListFiltered", *arguments)
        except Refused:
            # A camera may show the method and not have it: then it cannot tell.
            return None
        if handle and "ReleaseResultHandle" in await self._session.children(results):
            await self._session.call(results, "ReleaseResultHandle", handle)
        mine = [each for each in found if (each.get("MeasId") or {}).get("Id") == meas_id and not each["IsPartial"]]
        return mine[0] if mine and not error else None

    async def _is_at(self, command: Command) -> bool:
        job_id = self._jobs.get(command.command_id)
        if job_id is None:
            return False
        if job_id in self._started:
            return job_id not in self._results
        return await self._is_busy()

    async def _is_busy(self) -> bool:
        await self._catch_up()
        await self._until("tell its state", lambda: _MODE in self._states)
        return self._states[_MODE] == _EXECUTING

    @property
    def _state(self) -> str:
        return self._states.get(_STATE, "")

    async def _until(self, what: str, condition: Callable[[], bool], seconds: float | None = READY_SECONDS) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            states = ", ".join(filter(None, self._states.values()))
            raise Refused("device", f"the camera does not {what}; it is {states}") from None


def _recipe(command: Command) -> dict[str, str] | None:
    recipe = command.parameters.get("recipe_id")
    return {"Id": str(recipe)} if recipe else None


def _meas_id(command: Command) -> str:
    return str(command.parameters.get("meas_id", command.command_id))


def _check(method: str, error: int) -> None:
    if error:
        raise Refused("device", f"{method}: the camera says error {error}")


def _data(result: Mapping[str, Any]) -> dict[str, Any]:
    """Give a result as plain JSON; raises Refused for one that did not come about."""
    state = result["ResultState"]
    if state != _COMPLETED:
        raise Refused("device", f"the result has the state {_RESULT_STATES.get(state, state)}")
    named = {"job_id": "JobId", "meas_id": "MeasId", "part_id": "PartId", "recipe_id": "ExternalRecipeId"}
    return {
        "result_state": _RESULT_STATES[state],
        "result_id": result["ResultId"]["Id"],
        **{name: (result.get(field) or {}).get("Id") for name, field in named.items()},
        "is_simulated": bool(result.get("IsSimulated")),
        "created_at": result["CreationTime"],
        "content": result.get("ResultContent") or [],
    }
