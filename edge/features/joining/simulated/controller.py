"""A simulated tightening controller (OPC 40450-1): executes one joining at a time; faults can be injected."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from enum import Enum
from types import MappingProxyType
from typing import Any

from asyncua import Node, ua

from edge.features.joining.simulated.asset import AssetNamespaces, ToolAsset
from edge.features.joining.simulated.results import (
    BATCH,
    INTERVENTION,
    NOT_OK,
    OK,
    SINGLE,
    JoiningProcesses,
    SentIdentifiers,
    StoredResults,
    content,
    meta_data,
    process_name,
    status,
    target_of,
)
from edge.foundation.task_group import background_task
from edge.links.simulated_device import AWAY_SECONDS, Method, OpcuaDevice, open_device

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

_DI = "http://opcfoundation.org/UA/DI/"
_MACHINERY = "http://opcfoundation.org/UA/Machinery/"
_RESULT = "http://opcfoundation.org/UA/Machinery/Result/"
_IJT = "http://opcfoundation.org/UA/IJT/Base/"
_ASSET_NAMESPACES = (_IJT, "http://opcfoundation.org/UA/IJT/Tightening/", _DI, _MACHINERY)
_MACHINES = (_MACHINERY, 1001)
_RESULT_DATA, _JOINING_RESULT, _META_DATA = (_RESULT, 3008), (_IJT, 3005), (_IJT, 3020)
_LISTED = {"JoiningProcessMetaDataType": (_IJT, 3024), "JointDataType": (_IJT, 3028), "EntityDataType": (_IJT, 3010)}
_ERROR_CLASS = (_IJT, 1063)
_SEVERE = 900
NO_JOINTS: Mapping[str, str] = MappingProxyType({})


class IjtFault(Enum):
    """The fault of the next joining."""

    NONE = "none"
    REFUSED = "refused"
    """The controller refuses the start."""
    SILENT = "silent"
    """The joining never ends."""
    NOK = "nok"
    """The torque is beyond the limit."""
    NOK_ONCE = "nok-once"
    """The torque of the next joining is beyond the limit, those after it are good."""
    ERROR_STATE = "error-state"
    """The controller reports an error instead of a result, and refuses joinings until a client enables it again."""
    UNTOLD = "untold"
    """The controller does not report the result, which leaves a gap in the sequence numbers."""
    DISCONNECT = "disconnect"
    """The joining ends while the controller is unreachable."""
    RESTART = "restart"
    """The power fails once: the joining is lost."""
    CUT = "cut"
    """The connection breaks once, between the start of the joining and the answer to the call."""
    SLOW = "slow"
    """The joining takes ten times as long."""
    UNSEEN = "unseen"
    """The joining ends without a report when a client reads the identifiers."""


@asynccontextmanager
async def open_ijt(
    name: str = "wrench",
    *,
    port: int = 0,
    delay: float | None = WORK_SECONDS,
    processes: Sequence[str] = (),
    joints: Mapping[str, str] = NO_JOINTS,
) -> AsyncIterator["JoiningController"]:
    """Serve a controller whose joinings end after `delay` seconds; with None, only `end_joining` ends them.

    It lists `processes`, and `joints` with their processes; without them it takes every process and lists none.
    """
    async with open_device(name, NODESETS, port) as device:
        controller = JoiningController(device, delay, JoiningProcesses(processes, joints))
        await controller.begin(name)
        asset = background_task(controller.asset.run(), f"tool asset {name}")
        async with asset, background_task(controller.run(), f"joining controller {name}"):
            yield controller


class JoiningController:
    """A simulated controller; it records `begun` and `stopped` processes and `acknowledged` results, in order.

    `finished` lists the processes whose results are still stored, `declined` the reasons of refused starts. Without
    `echoes_identifiers`, the results contain no identifiers; without `accepts_abort`, the controller refuses every
    AbortJoiningProcess.
    `fault` is the injected fault, `identifiers` are the entities of the next result, `selected` is the process of the
    next StartSelectedJoining, `points` are the samples of each curve; the tool works only while it is `enabled`.
    """

    def __init__(self, device: OpcuaDevice, delay: float | None, processes: JoiningProcesses) -> None:
        self.device = device
        self.processes = processes
        self.points = 0
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self.declined: list[str] = []
        self.finished: list[str] = []
        self.echoes_identifiers = True
        self.accepts_abort = True
        self._sent = SentIdentifiers(device, self._listed, self._before_read)
        self.fault = IjtFault.NONE
        self._delay = delay
        self.asset = ToolAsset()
        self.selected: str | None = None
        self._joining: str | None = None
        self._parts: list[int] = []
        self.store = StoredResults(device, self._id)
        self._started: asyncio.Queue[str] = asyncio.Queue()
        self._owners: dict[str, tuple[Node, Node]] = {}

    @property
    def enabled(self) -> bool:
        """Whether the tool is enabled."""
        return self.asset.enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self.asset.enabled = enabled

    @property
    def identifiers(self) -> list[dict[str, Any]]:
        """The entities of the next result."""
        return self._sent.entities

    @identifiers.setter
    def identifiers(self, entities: list[dict[str, Any]]) -> None:
        self._sent.entities = entities

    @property
    def acknowledged(self) -> list[str]:
        """The ids of the results that a client has acknowledged."""
        return self.store.acknowledged

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
        ijt, tightening, di, machinery = [await self._index(uri) for uri in _ASSET_NAMESPACES]
        await self.asset.add(self.device, assets, AssetNamespaces(ijt, tightening, di, machinery))
        await self._offer(
            processes, self._process_methods() | self.processes.process_methods(self.device, self._listed)
        )
        if joint_methods := self.processes.joint_methods(self.device, self._listed, self._select_process):
            joints = await self._add(system, _IJT, "JointManagement", (_IJT, 1023))
            await self._offer(joints, joint_methods)
        await self._offer(results, self.store.methods())
        # A folder for results as variables; without them, clients get results by events and methods.
        await results.add_folder(
            ua.NodeId("Results", self.device.index), ua.QualifiedName("Results", await self._index(_RESULT))
        )
        for event, base in (("ResultReady", 1007), ("RequestedResult", 1035), ("System", 1006)):
            event_type = await (await self._node((_IJT, base))).add_object_type(
                self.device.index, f"Simulated{event}EventType"
            )
            self.store.events[event] = event_type.nodeid

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
                case IjtFault.NOK_ONCE:
                    self.fault = IjtFault.NONE
                    await self.end_joining(NOT_OK)
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
        entities = self.identifiers if self.echoes_identifiers else []
        is_batch = self.processes.size > 1 and classification == SINGLE
        if is_batch:
            self.processes.counter += evaluation == OK
        self.identifiers = self.identifiers if is_batch else []
        measured = await self._variant(_JOINING_RESULT, content(target_of(process), evaluation, self.points))
        contents = [] if classification == INTERVENTION else [measured]
        number = await self._record(process, entities, contents, evaluation=evaluation, classification=classification)
        if classification != INTERVENTION:
            self.finished.append(process)
        if is_batch:
            self._parts.append(number)
        if is_batch and not self.processes.is_complete:
            # The operator continues with the next bolt, or tightens the bad one again.
            self._joining = process
        await self._report(number)
        if is_batch and self.processes.is_complete:
            await self._end_batch(process)
        elif is_batch:
            self._started.put_nowait(process)

    async def _end_batch(self, process: str) -> None:
        """Report the result of the batch, which holds those of its joinings."""
        entities, self.identifiers = self.identifiers, []
        contents = [await self.store.variant(part) for part in self._parts]
        known = entities if self.echoes_identifiers else []
        number = await self._record(process, known, contents, evaluation=OK, classification=BATCH)
        self.processes.clear()
        self._parts.clear()
        await self._report(number)

    async def _record(
        self, process: str, entities: Sequence[Mapping[str, Any]], contents: list[Any], **kind: int
    ) -> int:
        number, now = self.store.next_number(), datetime.now(UTC).replace(tzinfo=None)
        meta = meta_data(number, process, entities, now, counters=self.processes.counters(), **kind)
        result = {"ResultMetaData": await self._variant(_META_DATA, meta), "ResultContent": contents}
        self.store.add(number, meta["ResultId"], result)
        return number

    async def _report(self, number: int) -> None:
        if self.fault not in {IjtFault.UNTOLD, IjtFault.UNSEEN}:
            await self.store.send("ResultReady", number)

    async def _variant(self, named: tuple[str, int], value: Mapping[str, Any]) -> ua.Variant:
        return await self.device.structures.variant(await self._id(named), value)

    async def _listed(self, name: str, values: Sequence[Mapping[str, Any]]) -> ua.Variant:
        return await self.device.structures.variant(await self._id(_LISTED[name]), list(values), is_array=True)

    def _select_process(self, process: str) -> None:
        self.selected = process

    async def send_result(self) -> None:
        """Send the event of the last result, also when it was sent before."""
        await self.store.send("ResultReady", self.store.last)

    async def break_down(self, reason: str) -> None:
        """Report an error, discard the active joining and disable the tool until a client enables it."""
        self._joining, self.enabled, self.identifiers = None, False, []
        await self.report_error(reason)

    async def report_error(self, reason: str) -> None:
        """Report an error; a joining continues."""
        fields = {
            "ConditionClassId": ua.Variant(await self._id(_ERROR_CLASS), ua.VariantType.NodeId),
            "Message": ua.Variant(ua.LocalizedText(reason, "en"), ua.VariantType.LocalizedText),
            "Severity": ua.Variant(_SEVERE, ua.VariantType.UInt16),
        }
        await self.device.send_event(self.store.events["System"], fields)

    def forget(self) -> None:
        """Reset the state as a power cut does; only the number of the next result survives."""
        self._joining = self.selected = None
        self.enabled = False
        self.identifiers = []
        self.store.clear()
        self._parts.clear()
        self.finished.clear()
        self.processes.clear()

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
        return {"EnableAsset": self._enable} | dict(self._sent.methods())

    def _process_methods(self) -> dict[str, Method]:
        return {
            "SelectJoiningProcess": self._select,
            "DeselectJoiningProcess": self._deselect,
            "StartSelectedJoining": self._start_selected,
            "StartJoiningProcess": self._start,
            "AbortJoiningProcess": self._abort,
        }

    async def _enable(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, self.enabled = await self.device.plain(arguments)
        await self.asset.write()
        if not self.enabled and self._joining:
            await self._stop()
        return status()

    async def _before_read(self) -> None:
        if self.fault is IjtFault.UNSEEN and self._joining:
            await self.end_joining()

    async def _select(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, process = await self.device.plain(arguments)
        self.selected = process_name(process)
        return status()

    async def _deselect(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        self.selected = None
        return status()

    async def _start_selected(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, deselect = await self.device.plain(arguments)
        process = self.selected
        if deselect:
            self.selected = None
        return await self._begin(process)

    async def _start(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, process, entities = await self.device.plain(arguments)
        status = await self._begin(process_name(process))
        if self._joining:
            self.identifiers += [entity for entity in entities if entity not in self.identifiers]
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
        return status()

    def _decline(self, reason: str) -> list[ua.Variant]:
        self.declined.append(reason)
        return status(reason)

    async def _abort(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        if self._joining is None:
            return status("no joining is at work")
        if not self.accepts_abort:
            return status("a joining is not aborted")
        await self._stop()
        return status()

    async def _stop(self) -> None:
        self.stopped.append(self._joining or "")
        await self.end_joining(NOT_OK, INTERVENTION)

    # The nodes.

    async def _offer(self, owner: Node, methods: Mapping[str, Method]) -> None:
        """Add methods of its type to an object and link them; other methods of the type are left out."""
        of_type = await self.device.server.get_node(await owner.read_type_definition()).get_parent()
        found: dict[str, ua.NodeId] = {}
        for value in (of_type, self.device.server.get_node(await owner.read_type_definition())):
            found |= {child.BrowseName.Name: child.NodeId for child in await value.get_children_descriptions()}
        for name in methods:
            method = self.device.server.get_node(found[name])
            await owner.add_reference(method, ua.ObjectIds.HasComponent)
            self._owners[name] = owner, method
        await self.device.link(owner, methods)

    async def _add(self, parent: Node, namespace: str | None, name: str, of: tuple[str, int]) -> Node:
        index = self.device.index if namespace is None else await self._index(namespace)
        node_id = ua.NodeId(name, self.device.index)
        return await parent.add_object(
            node_id, ua.QualifiedName(name, index), objecttype=await self._id(of), instantiate_optional=False
        )

    async def _node(self, named: tuple[str, int]) -> Node:
        return self.device.server.get_node(await self._id(named))

    async def _id(self, named: tuple[str, int]) -> ua.NodeId:
        uri, number = named
        return ua.NodeId(number, await self._index(uri))

    async def _index(self, uri: str) -> int:
        return int(await self.device.server.get_namespace_index(uri))
