"""Tightening controllers (OPC 40450-1, 40451-1): a command is one joining operation, its answer the result of that.

The id of the command travels among the identifiers of the operation and comes back with its result, among its
AssociatedEntities. By that a result is found again after a lost connection, also by a gateway that was started anew.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import structlog

from edge.config import IjtSettings
from edge.errors import Refused
from edge.links.opcua import ClientSession, EventField, TypeName
from edge.southbound.connected_equipment import ConnectedEquipment, Device, DeviceEvent, DeviceEvents
from edge.southbound.ijt_answer import COMMAND_ID, answer_data, entities, process, validate_command
from edge.southbound.ijt_methods import IjtMethods, find_methods
from edge.southbound.ijt_results import ControllerState, ResultCollector
from edge.southbound.opcua import OpenSession, find_single_instance, open_opcua_equipment, open_session
from edge.station.equipment import Command, StationPort

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
# From here on an error is one that stops the work (OPC 10000-5, 6.4.2: high severity).
_HIGH = 667
_WHY = "the station asked for it"

_log = structlog.get_logger(__name__)


def open_ijt(
    name: str,
    settings: IjtSettings,
    station: StationPort,
    scopes: Collection[str],
    session_factory: OpenSession = open_session,
) -> AbstractAsyncContextManager[ConnectedEquipment]:
    """Connect to a controller for the length of the block; one that is not there yet is waited for."""
    state = ControllerState()

    @asynccontextmanager
    async def open_device(session: ClientSession) -> AsyncIterator[tuple[Device, DeviceEvents]]:
        system = await find_single_instance(session, _SYSTEM, "joining system")
        methods = await find_methods(session, system)
        results = ResultCollector(methods, state, station, acknowledge=settings.acknowledge == "own")
        async with session.watch(None, _FIELDS, {}) as device_events:
            yield Controller(session, methods, results, state, settings.product_instance_uri), device_events

    return open_opcua_equipment(name, settings, station, scopes, session_factory, open_device)


class Controller:
    """A controller on one connection; `uri` is the ProductInstanceUri of its tool, or empty."""

    def __init__(
        self, session: ClientSession, methods: IjtMethods, results: ResultCollector, state: ControllerState, uri: str
    ) -> None:
        self._session = session
        self._methods = methods
        self._results = results
        self._known = state
        self._uri = uri
        self._error = ""
        self._caught_up = False
        self._starting = asyncio.Lock()

    async def handle_event(self, device_event: DeviceEvent) -> None:
        """Take a result, live or asked for, or an error."""
        event_type = device_event["EventType"]
        if await self._session.is_a(event_type, _REQUESTED):
            await self._results.handle_requested(device_event["Result"])
        elif await self._session.is_a(event_type, _RESULT_READY):
            await self._results.handle_live(device_event["Result"])
        elif await self._session.is_a(event_type, _SYSTEM_EVENT):
            condition, severity = device_event["ConditionClassId"], device_event["Severity"]
            severe = isinstance(severity, int) and severity >= _HIGH
            if severe and condition and await self._session.is_a(condition, _ERROR_CLASS):
                self._error = device_event["Message"] or "it does not say which"
                self._results.changed.set()

    async def perform(self, command: Command) -> Any:
        """Do a joining, unless the controller has its result already or is at it; give the result as JSON."""
        validate_command(command)
        self._error = ""
        if not self._caught_up:
            await self._results.catch_up(command)
            self._caught_up = True
        if not self._results.find(command):
            # Who stops a joining that is just being started waits until it is.
            async with self._starting:
                await self._ensure_begun(command)
        await self._results.wait_until(lambda: bool(self._results.find(command) or self._error), None)
        if result := self._results.find(command):
            return answer_data(result)
        raise Refused("device", f"the controller reports an error: {self._error}")

    async def stop(self, command: Command) -> None:
        """Abort the joining of a command, if the controller is at it; one that cannot abort has its tool locked."""
        async with self._starting:
            is_at = not self._results.find(command) and await self._is_running(command)
        if not is_at:
            return
        self._known.begun.discard(command.command_id)
        if "AbortJoiningProcess" in self._methods:
            await self._methods.call("AbortJoiningProcess", self._uri, process(command), _WHY)
        elif "EnableAsset" in self._methods:
            await self._methods.call("EnableAsset", self._uri, False)  # noqa: FBT003 - the argument Enable
        else:
            raise Refused("device", "the controller has no method to abort a joining")
        await self._reset_identifiers(command)

    async def settle(self, command: Command) -> None:
        """Acknowledge the result of a command."""
        await self._results.settle(command)

    async def _is_running(self, command: Command) -> bool:
        """Tell whether the controller has the command: its identifier waits there for the result."""
        if "SendIdentifiers" in self._methods and "GetIdentifiers" in self._methods:
            (found,) = await self._methods.call("GetIdentifiers", self._uri, [COMMAND_ID], output_count=1)
            return any(each.get("EntityId") == command.command_id for each in found or () if isinstance(each, Mapping))
        # One that cannot tell is not trusted to have forgotten it: to tighten twice is worse than to wait.
        return command.command_id in self._known.begun

    async def _ensure_begun(self, command: Command) -> None:
        """Start a command that the controller is not at; one that it may have been told to start, once more."""
        state, command_id = self._known, command.command_id
        is_unconfirmed = command_id in state.unconfirmed
        if not await self._is_running(command):
            state.unconfirmed.add(command_id)
            await self._prepare(command)
        elif not is_unconfirmed:
            return
        try:
            await self._start(command)
        except Refused as refusal:
            if not is_unconfirmed:
                raise
            # It had heard the start whose confirmation got lost, and does not begin anew in the middle.
            _log.info("the controller is taken to be at work", command=command_id, reason=refusal.message)
        state.unconfirmed.discard(command_id)
        state.begun.add(command_id)

    async def _prepare(self, command: Command) -> None:
        """Enable the tool, and say what the result is to be recognised by, in the place of what was said before."""
        methods, told = self._methods, entities(command)
        if "EnableAsset" in methods:
            await methods.call("EnableAsset", self._uri, True)  # noqa: FBT003 - the argument Enable
        await self._reset_identifiers(command)
        if "SendIdentifiers" in methods:
            await methods.call("SendIdentifiers", self._uri, told)
        elif "SendTextIdentifiers" in methods:
            await methods.call("SendTextIdentifiers", self._uri, [each["EntityId"] for each in told])
        elif "StartJoiningProcess" not in methods:
            raise Refused("device", "the controller takes no identifiers: its results could not be told apart")

    async def _start(self, command: Command) -> None:
        methods, named = self._methods, process(command)
        if command.parameters.get("start") is False:
            await self._select(named)
        elif named and "StartJoiningProcess" in methods:
            await methods.call("StartJoiningProcess", self._uri, named, entities(command))
        else:
            await self._select(named)
            # Without the method, the operator starts it with the trigger of the tool.
            if "StartSelectedJoining" in methods:
                await methods.call("StartSelectedJoining", self._uri, bool(named))

    async def _select(self, named: dict[str, str]) -> None:
        if not named:
            return
        if "SelectJoiningProcess" not in self._methods:
            raise Refused("device", "the controller has no method to select a joining process")
        await self._methods.call("SelectJoiningProcess", self._uri, named)

    async def _reset_identifiers(self, command: Command) -> None:
        if "ResetIdentifiers" in self._methods:
            # A controller may find it an error that there is nothing to be reset.
            with suppress(Refused):
                await self._methods.call("ResetIdentifiers", self._uri, [each["Name"] for each in entities(command)])
