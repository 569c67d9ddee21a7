"""A simulated tightening controller (OPC 40450-1): executes one joining at a time; faults can be injected."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from asyncua import Node, ua

from edge.links.background_task import background_task
from edge.sim.ijt_fault import IjtFault
from edge.sim.ijt_result import INTERVENTION, NOT_OK, OK, SINGLE, content, meta_data
from edge.sim.opcua_device import AWAY_SECONDS, Method, OpcuaDevice, open_device

NODESETS = (
    "Opc.Ua.Di.NodeSet2.xml",
    "Opc.Ua.IA.NodeSet2.xml",
    "Opc.Ua.Machinery.NodeSet2.xml",
    "Opc.Ua.Machinery_Result.NodeSet2.xml",
    "Opc.Ua.AMB.NodeSet2.xml",
    "Opc.Ua.Ijt.Base.NodeSet2.xml",
    "Opc.Ua.Ijt.Tightening.NodeSet2.xml",
)
WORK_SECONDS = 0.2
TARGET_NM = 85.0
"""The target torque of a joining process without a torque in its name."""

_DI = "http://opcfoundation.org/UA/DI/"
_MACHINERY = "http://opcfoundation.org/UA/Machinery/"
_RESULT = "http://opcfoundation.org/UA/Machinery/Result/"
_IJT = "http://opcfoundation.org/UA/IJT/Base/"
_MACHINES = (_MACHINERY, 1001)
_RESULT_DATA, _JOINING_RESULT, _META_DATA, _ENTITY = (_RESULT, 3008), (_IJT, 3005), (_IJT, 3020), (_IJT, 3010)
_ERROR_CLASS = (_IJT, 1063)
_SEVERE = 900


@asynccontextmanager
async def open_ijt(
    name: str = "wrench", *, port: int = 0, delay: float | None = WORK_SECONDS
) -> AsyncIterator["JoiningController"]:
    """Serve a controller whose joinings end after `delay` seconds; with None, only `end_joining` ends them."""
    async with open_device(name, NODESETS, port) as device:
        controller = JoiningController(device, delay)
        await controller.begin(name)
        async with background_task(controller.run(), f"joining controller {name}"):
            yield controller


class JoiningController:
    """A simulated controller; it records `begun` and `stopped` processes and `acknowledged` results, in order.

    `finished` lists the processes whose results are still stored, `declined` the reasons of refused starts. Without
    `echoes_identifiers`, the results contain no identifiers; without `accepts_abort`, the controller refuses every
    AbortJoiningProcess.
    `fault` is the injected fault, `identifiers` are the entities of the next result, `selected` is the process of the
    next StartSelectedJoining; the tool works only while it is `enabled`.
    """

    def __init__(self, device: OpcuaDevice, delay: float | None) -> None:
        self.device = device
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self.acknowledged: list[str] = []
        self.declined: list[str] = []
        self.finished: list[str] = []
        self.echoes_identifiers = True
        self.accepts_abort = True
        self.identifiers: list[dict[str, Any]] = []
        self.fault = IjtFault.NONE
        self._delay = delay
        self._numbers = itertools.count(1)
        self.enabled = False
        self.selected: str | None = None
        self._joining: str | None = None
        self._results: dict[int, dict[str, Any]] = {}
        self._started: asyncio.Queue[str] = asyncio.Queue()
        self._owners: dict[str, tuple[Node, Node]] = {}
        self._events: dict[str, ua.NodeId] = {}

    async def begin(self, name: str) -> None:
        """Add the joining system below Machines and link its methods."""
        definition = await (await self._node(_RESULT_DATA)).read_data_type_definition()
        # The importer drops AllowSubTypes of the meta data; in this structure type, IsOptional stands for it.
        definition.StructureType = ua.StructureType.StructureWithSubtypedValues
        definition.Fields[0].IsOptional = True
        await (await self._node(_RESULT_DATA)).write_data_type_definition(definition)
        system = await self._add(await self._node(_MACHINES), None, name, (_IJT, 1005))
        assets = await self._add(system, _IJT, "AssetManagement", (_DI, 1005))
        method_set = await self._add(assets, _DI, "MethodSet", (_IJT, 1026))
        processes = await self._add(system, _IJT, "JoiningProcessManagement", (_IJT, 1025))
        results = await self._add(system, _RESULT, "ResultManagement", (_IJT, 1022))
        await self._offer(method_set, self._asset_methods())
        await self._offer(processes, self._process_methods())
        await self._offer(results, self._result_methods())
        for event, base in (("ResultReady", 1007), ("RequestedResult", 1035), ("System", 1006)):
            event_type = await (await self._node((_IJT, base))).add_object_type(
                self.device.index, f"Simulated{event}EventType"
            )
            self._events[event] = event_type.nodeid

    async def run(self) -> None:
        """End each started joining after the delay, with the effect of `fault`."""
        while True:
            process = await self._started.get()
            if self.fault is IjtFault.CUT:
                self.fault = IjtFault.NONE
                async with self.device.unplugged():
                    await asyncio.sleep(AWAY_SECONDS)
            if self._delay is None or self.fault is IjtFault.SILENT:
                continue
            await asyncio.sleep(self._delay * (10 if self.fault is IjtFault.SLOW else 1))
            if process is not self._joining:
                continue
            match self.fault:
                case IjtFault.ERROR_STATE:
                    await self.break_down("the spindle is jammed")
                case IjtFault.NOK:
                    await self.end_joining(NOT_OK)
                case IjtFault.DISCONNECT:
                    async with self.device.unplugged():
                        await self.end_joining()
                        await asyncio.sleep(AWAY_SECONDS)
                case IjtFault.RESTART:
                    self.fault = IjtFault.NONE
                    async with self.device.unplugged():
                        self.forget()
                        await asyncio.sleep(AWAY_SECONDS)
                case _:
                    await self.end_joining()

    async def end_joining(self, evaluation: int = OK, classification: int = SINGLE) -> None:
        """End the active joining with a result; without one, record a joining of an operator at the tool."""
        process, self._joining = self._joining or self.selected or "by hand", None
        number, now = next(self._numbers), datetime.now(UTC).replace(tzinfo=None)
        entities = self.identifiers if self.echoes_identifiers else []
        meta = meta_data(number, process, entities, now, evaluation=evaluation, classification=classification)
        self.identifiers = []
        structures = self.device.structures
        measured = await structures.variant(await self._id(_JOINING_RESULT), content(_target(process), evaluation))
        result = {
            "ResultMetaData": await structures.variant(await self._id(_META_DATA), meta),
            "ResultContent": [] if classification == INTERVENTION else [measured],
        }
        if classification != INTERVENTION:
            self.finished.append(process)
        self._results[number] = {"id": meta["ResultId"], "result": result}
        if self.fault not in {IjtFault.UNTOLD, IjtFault.UNSEEN}:
            await self._send_result("ResultReady", number)

    async def send_result(self) -> None:
        """Send the event of the last result, also when it was sent before."""
        await self._send_result("ResultReady", max(self._results))

    async def break_down(self, reason: str) -> None:
        """Report an error, discard the active joining and disable the tool until a client enables it."""
        self._joining, self.enabled, self.identifiers = None, False, []
        fields = {
            "ConditionClassId": ua.Variant(await self._id(_ERROR_CLASS), ua.VariantType.NodeId),
            "Message": ua.Variant(ua.LocalizedText(reason, "en"), ua.VariantType.LocalizedText),
            "Severity": ua.Variant(_SEVERE, ua.VariantType.UInt16),
        }
        await self.device.send_event(self._events["System"], fields)

    def forget(self) -> None:
        """Reset the state as a power cut does; only the number of the next result survives."""
        self._joining = self.selected = None
        self.enabled = False
        self.identifiers = []
        self._results.clear()
        self.finished.clear()

    @asynccontextmanager
    async def without(self, *methods: str) -> AsyncIterator[None]:
        """Remove some methods for the length of the block, to act as a controller with fewer functions."""
        for name in methods:
            owner, method = self._owners[name]
            await owner.delete_reference(method, ua.ObjectIds.HasComponent)
        try:
            yield
        finally:
            for name in methods:
                owner, method = self._owners[name]
                await owner.add_reference(method, ua.ObjectIds.HasComponent)

    # The methods for clients.

    def _asset_methods(self) -> Mapping[str, Method]:
        return {
            "EnableAsset": self._enable,
            "SendIdentifiers": self._send_identifiers,
            "SendTextIdentifiers": self._send_text_identifiers,
            "GetIdentifiers": self._get_identifiers,
            "ResetIdentifiers": self._reset_identifiers,
        }

    def _process_methods(self) -> Mapping[str, Method]:
        return {
            "SelectJoiningProcess": self._select,
            "DeselectJoiningProcess": self._deselect,
            "StartSelectedJoining": self._start_selected,
            "StartJoiningProcess": self._start,
            "AbortJoiningProcess": self._abort,
        }

    def _result_methods(self) -> Mapping[str, Method]:
        return {
            "GetLatestResult": self._get_latest_result,
            "GetResultById": self._get_result_by_id,
            "GetResultIdListFiltered": self._get_result_ids,
            "RequestResults": self._request_results,
            "RequestUnacknowledgedResults": self._request_unacknowledged,
            "AcknowledgeResults": self._acknowledge,
        }

    async def _enable(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, self.enabled = await self.device.plain(arguments)
        if not self.enabled and self._joining:
            await self._stop()
        return _status()

    async def _send_identifiers(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, entities = await self.device.plain(arguments)
        self.identifiers += entities
        return _status()

    async def _send_text_identifiers(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, texts = await self.device.plain(arguments)
        self.identifiers += [{"EntityId": text, "IsExternal": True, "EntityType": 0} for text in texts]
        return _status()

    async def _get_identifiers(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, names = await self.device.plain(arguments)
        if self.fault is IjtFault.UNSEEN and self._joining:
            await self.end_joining()
        found = [each for each in self.identifiers if not names or each.get("Name") in names]
        return [await self.device.structures.variant(await self._id(_ENTITY), found, is_array=True), *_status()]

    async def _reset_identifiers(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, names, everything, latest = await self.device.plain(arguments)
        if names:
            self.identifiers = [each for each in self.identifiers if each.get("Name") not in names]
        elif everything or latest:
            self.identifiers = [] if everything else self.identifiers[:-1]
        return _status()

    async def _select(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, process = await self.device.plain(arguments)
        self.selected = _named(process)
        return _status()

    async def _deselect(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        self.selected = None
        return _status()

    async def _start_selected(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, deselect = await self.device.plain(arguments)
        process = self.selected
        if deselect:
            self.selected = None
        return await self._begin(process)

    async def _start(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, process, entities = await self.device.plain(arguments)
        status = await self._begin(_named(process))
        if self._joining:
            self.identifiers += [each for each in entities if each not in self.identifiers]
        return status

    async def _begin(self, process: str | None) -> list[ua.Variant]:
        if not self.enabled or self.fault is IjtFault.REFUSED:
            return self._decline("the tool is locked")
        if self._joining:
            return self._decline("a joining is at work")
        if not process:
            return self._decline("no joining process is selected")
        self._joining = process
        self.begun.append(process)
        self._started.put_nowait(process)
        if self.fault is IjtFault.CUT:
            await asyncio.sleep(AWAY_SECONDS)
        return _status()

    def _decline(self, reason: str) -> list[ua.Variant]:
        self.declined.append(reason)
        return _status(reason)

    async def _abort(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        if self._joining is None:
            return _status("no joining is at work")
        if not self.accepts_abort:
            return _status("a joining is not aborted")
        await self._stop()
        return _status()

    async def _stop(self) -> None:
        self.stopped.append(self._joining or "")
        await self.end_joining(NOT_OK, INTERVENTION)

    async def _get_latest_result(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        number = max(self._results, default=None)
        latest = await self._result(number) if number is not None else ua.Variant(ua.ExtensionObject())
        return [ua.Variant(0, ua.VariantType.UInt32), latest, _error(number is None)]

    async def _get_result_by_id(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        result_id, _timeout = await self.device.plain(arguments)
        number = next((number for number, each in self._results.items() if each["id"] == result_id), None)
        found = await self._result(number) if number is not None else ua.Variant(ua.ExtensionObject())
        return [ua.Variant(0, ua.VariantType.UInt32), found, _error(number is None)]

    async def _get_result_ids(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _filter, _order, most, _timeout = await self.device.plain(arguments)
        ids = [each["id"] for each in self._results.values()][: most or None]
        listed = ua.Variant(ids, ua.VariantType.String, is_array=True)
        return [ua.Variant(0, ua.VariantType.UInt32), listed, _error(failed=False)]

    async def _request_results(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        first, last, *_times = await self.device.plain(arguments)
        await self._resend([number for number in self._results if first <= number <= last])
        return [ua.Variant(0.0), *_status()]

    async def _request_unacknowledged(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        found = [number for number, each in self._results.items() if each["id"] not in self.acknowledged]
        await self._resend(found)
        return [ua.Variant(0.0), ua.Variant(len(found), ua.VariantType.UInt32), *_status()]

    async def _acknowledge(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        (ids,) = await self.device.plain(arguments)
        known = {each["id"] for each in self._results.values()}
        self.acknowledged += [each for each in ids if each in known]
        wrong = [int(each not in known) for each in ids]
        return [ua.Variant(wrong if any(wrong) else [], ua.VariantType.Int32, is_array=True), _error(any(wrong))]

    # The events and the nodes.

    async def _resend(self, numbers: Collection[int]) -> None:
        for number in numbers:
            await self._send_result("RequestedResult", number)

    async def _send_result(self, event: str, number: int) -> None:
        await self.device.send_event(self._events[event], {"Result": await self._result(number)})

    async def _result(self, number: int) -> ua.Variant:
        return await self.device.structures.variant(await self._id(_RESULT_DATA), self._results[number]["result"])

    async def _offer(self, owner: Node, methods: Mapping[str, Method]) -> None:
        """Add methods of its type to an object and link them; other methods of the type are left out."""
        of_type = await self.device.server.get_node(await owner.read_type_definition()).get_parent()
        found: dict[str, ua.NodeId] = {}
        for each in (of_type, self.device.server.get_node(await owner.read_type_definition())):
            found |= {child.BrowseName.Name: child.NodeId for child in await each.get_children_descriptions()}
        for name in methods:
            method = self.device.server.get_node(found[name])
            await owner.add_reference(method, ua.ObjectIds.HasComponent)
            self._owners[name] = owner, method
        await self.device.link(owner, methods)

    async def _add(self, parent: Node, namespace: str | None, name: str, of: tuple[str, int]) -> Node:
        index = self.device.index if namespace is None else (await self._id((namespace, 0))).NamespaceIndex
        node_id = ua.NodeId(name, self.device.index)
        return await parent.add_object(
            node_id, ua.QualifiedName(name, index), objecttype=await self._id(of), instantiate_optional=False
        )

    async def _node(self, named: tuple[str, int]) -> Node:
        return self.device.server.get_node(await self._id(named))

    async def _id(self, named: tuple[str, int]) -> ua.NodeId:
        uri, number = named
        return ua.NodeId(number, await self.device.server.get_namespace_index(uri))


def _named(process: Mapping[str, str]) -> str | None:
    """Return the first identifier of a process: its id, the id of its origin, or its selection name."""
    names: Sequence[str] = ("JoiningProcessId", "JoiningProcessOriginId", "SelectionName")
    return next((process[name] for name in names if process.get(name)), None)


def _target(process: str) -> float:
    """Return the target torque in the name of a process, such as `85Nm`; TARGET_NM without one."""
    found = re.search(r"(\d+(?:\.\d+)?) ?Nm", process)
    return float(found.group(1)) if found else TARGET_NM


def _status(failure: str = "") -> list[ua.Variant]:
    status = ua.Variant(int(bool(failure)), ua.VariantType.Int64)
    return [status, ua.Variant(ua.LocalizedText(failure or "done", "en"), ua.VariantType.LocalizedText)]


def _error(failed: bool) -> ua.Variant:  # noqa: FBT001 - the error number of the method
    return ua.Variant(int(failed), ua.VariantType.Int32)
