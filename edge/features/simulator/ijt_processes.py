"""The joining processes, joints and counters of a simulated tightening controller, and identifiers of results."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from asyncua import ua

from edge.features.simulator.ijt_result import COUNT, SIZE
from edge.features.simulator.opcua_device import Method, OpcuaDevice

Lister = Callable[[str, Sequence[Mapping[str, Any]]], Any]
"""Returns a list of structures, by the name of their type, as a variant."""


class JoiningProcesses:
    """Processes and joints by their ids; `size` is that of the batch, 1 without one, `counter` counts good joinings.

    `selected_joint` is the joint that a client has selected. Without `processes` and `joints`, the controller offers no
    lists.
    """

    def __init__(self, processes: Sequence[str], joints: Mapping[str, str]) -> None:
        self.processes = list(processes)
        self.joints = dict(joints)
        self.size = 1
        self.counter = 0
        self.selected_joint = ""

    @property
    def is_complete(self) -> bool:
        """Whether no joining of the batch is left."""
        return self.counter >= self.size

    def clear(self) -> None:
        """Forget the batch and the selection."""
        self.size, self.counter, self.selected_joint = 1, 0, ""

    def counters(self) -> list[dict[str, Any]]:
        """Return the counters of a result (ResultCounterDataType); none outside a batch."""
        if self.size == 1:
            return []
        return [{"CounterType": SIZE, "CounterValue": self.size}, {"CounterType": COUNT, "CounterValue": self.counter}]

    def process_methods(self, device: OpcuaDevice, listed: Lister) -> dict[str, Method]:
        """Return the methods of JoiningProcessManagement that set counters, and the list of processes."""

        def counting(count: Callable[[int], int]) -> Method:
            async def handle(_: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
                _uri, _process, number = await device.plain(arguments)
                self.counter = max(0, count(number))
                return status()

            return handle

        async def set_size(_: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
            _uri, _process, self.size = await device.plain(arguments)
            return status()

        async def reset(_: ua.NodeId, *_arguments: ua.Variant) -> list[ua.Variant]:
            self.counter = 0
            return status()

        async def get_list(_: ua.NodeId, *_arguments: ua.Variant) -> list[ua.Variant]:
            found = [{"JoiningProcessId": process, "Name": process} for process in self.processes]
            return [await listed("JoiningProcessMetaDataType", found), *status()]

        return {
            "SetJoiningProcessSize": set_size,
            "ResetJoiningProcess": reset,
            "SetJoiningProcessCounter": counting(lambda number: number),
            "IncrementJoiningProcessCounter": counting(lambda number: self.counter + number),
            "DecrementJoiningProcessCounter": counting(lambda number: self.counter - number),
        } | ({"GetJoiningProcessList": get_list} if self.processes else {})

    def joint_methods(self, device: OpcuaDevice, listed: Lister, select: Callable[[str], None]) -> Mapping[str, Method]:
        """Return the methods of JointManagement; `select` selects the process of a joint."""

        async def select_joint(_: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
            _uri, joint, _origin = await device.plain(arguments)
            if joint not in self.joints:
                return status(f"there is no joint {joint}")
            self.selected_joint = joint
            select(self.joints[joint])
            return status()

        async def get_list(_: ua.NodeId, *_arguments: ua.Variant) -> list[ua.Variant]:
            return [await listed("JointDataType", [{"JointId": text} for text in self.joints]), *status()]

        return {"SelectJoint": select_joint, "GetJointList": get_list} if self.joints else {}


def status(failure: str = "") -> list[ua.Variant]:
    """Return Status and StatusMessage of a method; 0 unless it failed."""
    number = ua.Variant(int(bool(failure)), ua.VariantType.Int64)
    return [number, ua.Variant(ua.LocalizedText(failure or "done", "en"), ua.VariantType.LocalizedText)]


def process_name(process: Mapping[str, str]) -> str | None:
    """Return the first identifier of a process: its id, the id of its origin, or its selection name."""
    names: Sequence[str] = ("JoiningProcessId", "JoiningProcessOriginId", "SelectionName")
    return next((process[name] for name in names if process.get(name)), None)


_KEYS = ("Name", "EntityId", "EntityOriginId")
"""The members by which a client names an identifier; a text identifier has no Name."""


class SentIdentifiers:
    """`entities` are those of the next result (EntityDataType); `listed` encodes them, `on_read` is called first."""

    def __init__(
        self,
        device: OpcuaDevice,
        listed: Callable[[str, Sequence[Mapping[str, Any]]], Awaitable[ua.Variant]],
        on_read: Callable[[], Awaitable[None]],
    ) -> None:
        self.entities: list[dict[str, Any]] = []
        self._device = device
        self._listed = listed
        self._on_read = on_read

    def methods(self) -> Mapping[str, Method]:
        """Return the methods of MethodSet that send, read and reset identifiers."""
        return {
            "SendIdentifiers": self._send,
            "SendTextIdentifiers": self._send_texts,
            "GetIdentifiers": self._get,
            "ResetIdentifiers": self._reset,
        }

    async def _send(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, entities = await self._device.plain(arguments)
        self.entities += entities or ()
        return status()

    async def _send_texts(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, texts = await self._device.plain(arguments)
        self.entities += [{"EntityId": text, "IsExternal": True, "EntityType": 0} for text in texts or ()]
        return status()

    async def _get(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, names = await self._device.plain(arguments)
        await self._on_read()
        entities = [entity for entity in self.entities if not names or _is_named(entity, names)]
        return [await self._listed("EntityDataType", entities), *status()]

    async def _reset(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _uri, names, everything, latest = await self._device.plain(arguments)
        if names:
            self.entities = [entity for entity in self.entities if not _is_named(entity, names)]
        elif everything or latest:
            self.entities = [] if everything else self.entities[:-1]
        return status()


def _is_named(entity: Mapping[str, Any], names: Sequence[str]) -> bool:
    return any(entity.get(key) in names for key in _KEYS)
