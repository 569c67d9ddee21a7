"""The stored results of a simulated tightening controller, with the methods of its ResultManagement."""

import itertools
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from asyncua import ua

from edge.features.simulator.ijt_processes import status
from edge.features.simulator.opcua_device import Method, OpcuaDevice

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
