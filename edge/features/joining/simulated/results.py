"""The result of a simulated tightening: a result of OPC 40450-1 in plain Python, for a target torque."""

import itertools
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from asyncua import ua

from edge.links.simulated_device import Method, OpcuaDevice
from edge.model.engineering_unit import CEFACT, engineering_unit

OK, NOT_OK = 1, 2
SINGLE, BATCH, INTERVENTION = 1, 3, 6
SIZE, COUNT = 2, 3
"""Types of counters: the size of a batch, and the joinings of it that are done."""
TARGET_NM = 85.0
"""The target torque of a joining process without a torque in its name."""
COMPLETED, ABORTED = 1, 3
_PROGRAM = 1
_FINAL = 1
_TORQUE, _ANGLE = 2, 3
_TOLERANCE = 0.1
_NOK_FACTOR = 1.2
_OK_FACTOR = 1.0024


def target_of(process: str) -> float:
    """Return the target torque in the name of a process, such as `85Nm`; TARGET_NM without one."""
    match = re.search(r"(\d+(?:\.\d+)?) ?Nm", process)
    return float(match.group(1)) if match else TARGET_NM


def meta_data(
    number: int,
    process: str,
    entities: Sequence[Mapping[str, Any]],
    at: datetime,
    *,
    evaluation: int,
    classification: int,
    counters: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the meta data of a result (JoiningResultMetaDataType); `number` is its sequence number."""
    return {
        "ResultId": f"T{number}",
        "IsPartial": False,
        "IsSimulated": True,
        "ResultState": ABORTED if classification == INTERVENTION else COMPLETED,
        "CreationTime": at,
        "ResultEvaluation": evaluation,
        "JoiningTechnology": "Tightening",
        "SequenceNumber": number,
        "Name": process,
        "Classification": classification,
        "AssociatedEntities": list(entities),
        **({"ResultCounters": list(counters)} if counters else {}),
    }


def content(target: float, evaluation: int, points: int = 0) -> dict[str, Any]:
    """Return the measured values (JoiningResultDataType): a torque in N·m near its target, or beyond its limit.

    With `points`, it has a trace: curves of torque and angle of the final step.
    """
    torque = _torque(round(target * (_OK_FACTOR if evaluation == OK else _NOK_FACTOR), 1), target, evaluation)
    step = {
        "StepResultId": "S1",
        "ProgramStep": "1",
        "Name": "Rundown",
        "ResultEvaluation": OK,
        "StepResultValues": [_torque(round(target / 10, 1), None, OK), _angle(720.0)],
    }
    final = {
        "StepResultId": "S2",
        "ProgramStep": "2",
        "Name": "Final",
        "ResultEvaluation": evaluation,
        "StepResultValues": [torque, _angle(41.5)],
    }
    failed = {"FailureReason": _PROGRAM, "FailingStepResultId": "S2"} if evaluation == NOT_OK else {}
    trace = {"Trace": _trace(torque["MeasuredValue"], 41.5, points)} if points else {}
    return {"OverallResultValues": [torque, _angle(41.5)], "StepResults": [step, final], **failed, **trace}


def _trace(torque: float, angle: float, points: int) -> dict[str, Any]:
    last = max(points - 1, 1)
    curves = [
        _curve("Torque", _TORQUE, "N·m", [round(torque * (n / last) ** 3, 3) for n in range(points)]),
        _curve("Angle", _ANGLE, "°", [round(angle * n / last, 3) for n in range(points)]),
    ]
    step = {"StepTraceId": "T2", "StepResultId": "S2", "NumberOfTracePoints": points, "SamplingInterval": 1.0}
    return {"StepTraces": [step | {"StepTraceContent": curves}]}


def _curve(name: str, quantity: int, symbol: str, values: Sequence[float]) -> dict[str, Any]:
    return {"Values": list(values), "Name": name, "PhysicalQuantity": quantity, "EngineeringUnits": _unit(symbol)}


def _torque(value: float, target: float | None, evaluation: int) -> dict[str, Any]:
    limits: dict[str, float] = {}
    if target is not None:
        limits = {
            "LowLimit": round(target * (1 - _TOLERANCE), 1),
            "HighLimit": round(target * (1 + _TOLERANCE), 1),
            "TargetValue": target,
        }
    return _value("Torque", _TORQUE, "N·m", value) | limits | {"ResultEvaluation": evaluation}


def _angle(value: float) -> dict[str, Any]:
    return _value("Angle", _ANGLE, "°", value) | {"ResultEvaluation": OK}


def _unit(symbol: str) -> ua.EUInformation:
    return ua.EUInformation(
        NamespaceUri=CEFACT, UnitId=engineering_unit(symbol).unit_id, DisplayName=ua.LocalizedText(symbol)
    )


def _value(name: str, quantity: int, symbol: str, value: float) -> dict[str, Any]:
    return {
        "MeasuredValue": value,
        "Name": name,
        "ValueTag": _FINAL,
        "PhysicalQuantity": quantity,
        "EngineeringUnits": _unit(symbol),
    }


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


_RESULT = "http://opcfoundation.org/UA/Machinery/Result/"


class StoredResults:
    """Results by their numbers; `acknowledged` lists ids. `events` are the types of events by their short names."""

    def __init__(self, device: OpcuaDevice, node_id: Callable[[tuple[str, int]], Awaitable[ua.NodeId]]) -> None:
        self.acknowledged: list[str] = []
        self.events: dict[str, ua.NodeId] = {}
        self._device = device
        self._id = node_id
        self._numbers = itertools.count(1)
        self._results: dict[int, dict[str, Any]] = {}

    @property
    def last(self) -> int:
        """The number of the last result."""
        return max(self._results)

    @property
    def ids(self) -> list[str]:
        """The ids of the stored results, the oldest first."""
        return [result["id"] for result in self._results.values()]

    def next_number(self) -> int:
        """Return the number of the next result."""
        return next(self._numbers)

    def add(self, number: int, result_id: str, result: Mapping[str, Any]) -> None:
        """Store a result."""
        self._results[number] = {"id": result_id, "result": result}

    def clear(self) -> None:
        """Forget all results; their numbers are not used again."""
        self._results.clear()

    def methods(self) -> Mapping[str, Method]:
        """Return the methods of ResultManagement."""
        return {
            "GetLatestResult": self._get_latest_result,
            "GetResultById": self._get_result_by_id,
            "GetResultIdListFiltered": self._get_result_ids,
            "RequestResults": self._request_results,
            "RequestUnacknowledgedResults": self._request_unacknowledged,
            "AcknowledgeResults": self._acknowledge,
        }

    async def _get_latest_result(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        number = max(self._results, default=None)
        latest = await self.variant(number) if number is not None else ua.Variant(ua.ExtensionObject())
        return [ua.Variant(0, ua.VariantType.UInt32), latest, _error(number is None)]

    async def _get_result_by_id(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        result_id, _timeout = await self._device.plain(arguments)
        number = next((number for number, result in self._results.items() if result["id"] == result_id), None)
        found = await self.variant(number) if number is not None else ua.Variant(ua.ExtensionObject())
        return [ua.Variant(0, ua.VariantType.UInt32), found, _error(number is None)]

    async def _get_result_ids(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _filter, _order, most, _timeout = await self._device.plain(arguments)
        ids = [result["id"] for result in self._results.values()][: most or None]
        listed = ua.Variant(ids, ua.VariantType.String, is_array=True)
        return [ua.Variant(0, ua.VariantType.UInt32), listed, _error(failed=False)]

    async def _request_results(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        first, last, *_times = await self._device.plain(arguments)
        await self._resend([number for number in self._results if first <= number <= last])
        return [ua.Variant(0.0), *status()]

    async def _request_unacknowledged(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        found = [number for number, result in self._results.items() if result["id"] not in self.acknowledged]
        await self._resend(found)
        return [ua.Variant(0.0), ua.Variant(len(found), ua.VariantType.UInt32), *status()]

    async def _acknowledge(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        (ids,) = await self._device.plain(arguments)
        known = {result["id"] for result in self._results.values()}
        self.acknowledged += [identifier for identifier in ids if identifier in known]
        wrong = [int(identifier not in known) for identifier in ids]
        return [ua.Variant(wrong if any(wrong) else [], ua.VariantType.Int32, is_array=True), _error(any(wrong))]

    async def _resend(self, numbers: Collection[int]) -> None:
        for number in numbers:
            await self.send("RequestedResult", number)

    async def send(self, event: str, number: int) -> None:
        """Send the event of a result."""
        await self._device.send_event(self.events[event], {"Result": await self.variant(number)})

    async def variant(self, number: int) -> ua.Variant:
        """Return a result as a structure (ResultDataType)."""
        return await self._device.structures.variant(await self._id((_RESULT, 3008)), self._results[number]["result"])


def _error(failed: bool) -> ua.Variant:  # noqa: FBT001 - the error number of the method
    return ua.Variant(int(failed), ua.VariantType.Int32)
