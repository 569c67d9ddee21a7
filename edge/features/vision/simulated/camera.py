"""A simulated Machine Vision camera (OPC 40100-1): executes one job at a time; faults can be injected."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Any

from asyncua import Node, ua

from edge.foundation.task_group import TaskGroup, background_task
from edge.links.simulated_device import AWAY_SECONDS, OpcuaDevice, open_device

_FILE_TYPE = ua.NodeId(ua.ObjectIds.FileType)


class ResultTransfer:
    """Serves `content` as a new temporary file for each GenerateFileForRead; None offers no file.

    `generated` lists the options of the requests, `open_files` the handles that are not closed.
    """

    def __init__(self, device: OpcuaDevice, transfer: Node, content: bytes | None) -> None:
        self.content = content
        self.generated: list[object] = []
        self.open_files: dict[int, int] = {}
        self._device = device
        self._transfer = transfer

    async def begin(self) -> None:
        """Link the method that generates a file."""
        await self._device.link(self._transfer, {"GenerateFileForRead": self._generate})

    async def _generate(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        self.generated += await self._device.plain(arguments)
        content, handle = self.content or b"", len(self.generated)
        file = await self._transfer.add_object(self._device.index, f"file {handle}", objecttype=_FILE_TYPE)
        await (await file.get_child("0:Size")).write_value(len(content), ua.VariantType.UInt64)
        self.open_files[handle] = 0

        async def read(_: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant] | ua.StatusCode:
            given, length = await self._device.plain(arguments)
            if given not in self.open_files or length < 0:
                return ua.StatusCode(ua.StatusCodes.BadInvalidArgument)
            start = self.open_files[given]
            self.open_files[given] = start + length
            return [ua.Variant(content[start : start + length], ua.VariantType.ByteString)]

        async def close(_: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant] | ua.StatusCode:
            (given,) = await self._device.plain(arguments)
            if self.open_files.pop(given, None) is None:
                return ua.StatusCode(ua.StatusCodes.BadInvalidArgument)
            await self._device.server.delete_nodes([file], recursive=True)
            return []

        await self._device.link(file, {"Read": read, "Close": close})
        return [
            ua.Variant(file.nodeid, ua.VariantType.NodeId),
            ua.Variant(handle, ua.VariantType.UInt32),
            ua.Variant(ua.NodeId(), ua.VariantType.NodeId),
        ]


NAMESPACE_URI = "http://opcfoundation.org/UA/MachineVision"
NODESETS = ("Opc.Ua.MachineVision.NodeSet2.xml",)
WORK_SECONDS = 0.2
STATES = MappingProxyType(
    {
        "Preoperational": 5028,
        "Halted": 5029,
        "Error": 5030,
        "Operational": 5031,
        "Initialized": 5056,
        "Ready": 5057,
        "SingleExecution": 5058,
    }
)
"""The node ids of the states in the namespace of OPC 40100-1."""

_SYSTEM_TYPE = 1003
_RESULT_READY, _RECIPE_PREPARED = 1024, 1022
_RESULT, _RESULT_ID, _JOB_ID, _RECIPE_ID = 3006, 3021, 3016, 3013
_ERROR = ua.Variant(1, ua.VariantType.Int32)
_NO_ERROR = ua.Variant(0, ua.VariantType.Int32)


class VisionFault(Enum):
    """The fault of the next job."""

    NONE = "none"
    REFUSED = "refused"
    """StartSingleJob answers with an error."""
    SILENT = "silent"
    """The job never ends."""
    FAILED = "failed"
    """The result has the state Failed."""
    ERROR_STATE = "error-state"
    """The state machine enters Error instead of sending a result."""
    DISCONNECT = "disconnect"
    """The job ends while the camera is unreachable."""
    RESTART = "restart"
    """The power fails once: the job is lost."""
    SLOW = "slow"
    """The job takes ten times as long."""
    SLOW_RECIPE = "slow-recipe"
    """The recipe is prepared with a delay after the answer to PrepareRecipe."""


class _ResultState(IntEnum):
    COMPLETED = 1
    PROCESSING = 2
    FAILED = 4


@asynccontextmanager
async def open_vision(
    name: str = "camera",
    *,
    port: int = 0,
    delay: float | None = WORK_SECONDS,
    content: Sequence[Any] = (True,),
    image: bytes | None = None,
) -> AsyncIterator["VisionCamera"]:
    """Serve a camera that finds `content`; its jobs end after `delay` seconds, with None only by `end_job`.

    With `image` it offers this file with each result.
    """
    async with open_device(name, NODESETS, port) as device:
        index = await device.server.get_namespace_index(NAMESPACE_URI)
        system = await device.server.nodes.objects.add_object(
            device.index, name, objecttype=ua.NodeId(_SYSTEM_TYPE, index)
        )
        camera = VisionCamera(device, index, system, delay, content)
        await camera.offer(image)
        await camera.begin()
        async with background_task(camera.run(), f"vision {name}"):
            yield camera


class VisionCamera:
    """A simulated camera; it records `begun`, `stopped` and `finished` jobs by MeasId, in order.

    `fault` is the injected fault; without `lists_results`, GetResultListFiltered fails. `recipes` lists the prepared
    recipes; `jobs` pairs each MeasId with the recipe that was prepared at its start. `content` is that of the next
    result. `state_texts` maps names of states to the texts that the camera shows instead.
    """

    def __init__(
        self, device: OpcuaDevice, index: int, system: Node, delay: float | None, content: Sequence[Any]
    ) -> None:
        self.device = device
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self.finished: list[str] = []
        self.recipes: list[str] = []
        self.jobs: list[tuple[str, str | None]] = []
        self.state_texts: Mapping[str, str] = {}
        self.fault = VisionFault.NONE
        self.lists_results = True
        self._index = index
        self._system = system
        self._delay = delay
        self.content = content
        self._numbers = itertools.count(1)
        self._job: dict[str, Any] | None = None
        self._results: list[dict[str, Any]] = []
        self.transfer: ResultTransfer | None = None
        self._started: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._preparing: asyncio.Queue[str] = asyncio.Queue()

    async def begin(self) -> None:
        """Link the methods and enter the state Preoperational."""
        machine, automatic = await self._machines()
        await self.device.link(machine, {"Reset": self._reset, "SelectModeAutomatic": self._select_automatic})
        await self.device.link(
            automatic, {"StartSingleJob": self._start_single_job, "Stop": self._stop, "Abort": self._stop}
        )
        recipes = await self._system.get_child(f"{self._index}:RecipeManagement")
        await self.device.link(recipes, {"PrepareRecipe": self._prepare_recipe})
        results = await self._system.get_child(f"{self._index}:ResultManagement")
        await self.device.link(
            results, {"GetResultById": self._get_result_by_id, "GetResultListFiltered": self._get_result_list}
        )
        await self.device.link_others(self._system)
        await self._show("Preoperational", None)

    async def offer(self, image: bytes | None) -> None:
        """Offer an image with each result from now on; None offers none."""
        transfer = await self._system.get_child([f"{self._index}:ResultManagement", f"{self._index}:ResultTransfer"])
        self.transfer = ResultTransfer(self.device, transfer, image)
        await self.transfer.begin()

    async def run(self) -> None:
        """Execute the started jobs and the preparations of recipes until cancelled."""
        async with TaskGroup() as tasks:
            tasks.create_task(self._run_jobs(), name="jobs")
            tasks.create_task(self._run_preparations(), name="recipes")

    async def _run_preparations(self) -> None:
        while True:
            recipe = await self._preparing.get()
            await asyncio.sleep(self._delay or WORK_SECONDS)
            self.recipes.append(recipe)
            fields = {"ExternalId": await self._id(_RECIPE_ID, recipe)}
            await self.device.send_event(ua.NodeId(_RECIPE_PREPARED, self._index), fields)

    async def _run_jobs(self) -> None:
        while True:
            job = await self._started.get()
            if self._delay is None or self.fault is VisionFault.SILENT:
                continue
            await asyncio.sleep(self._delay * (10 if self.fault is VisionFault.SLOW else 1))
            if job is not self._job:
                continue
            match self.fault:
                case VisionFault.ERROR_STATE:
                    await self.break_down()
                case VisionFault.FAILED:
                    await self.end_job(_ResultState.FAILED)
                case VisionFault.DISCONNECT:
                    async with self.device.unplugged():
                        await self.end_job()
                        await asyncio.sleep(AWAY_SECONDS)
                case VisionFault.RESTART:
                    self.fault = VisionFault.NONE
                    async with self.device.unplugged():
                        await self.forget()
                        await asyncio.sleep(AWAY_SECONDS)
                case _:
                    await self.end_job()

    async def trigger(self, meas_id: str = "by hand") -> None:
        """Execute a job that no client has started: end it at once with a result."""
        self._job = {
            "JobId": {"Id": f"V{next(self._numbers)}"},
            "MeasId": {"Id": meas_id},
            "PartId": {"Id": ""},
            "ExternalRecipeId": None,
        }
        await self.end_job()

    async def report_part(self) -> None:
        """Report a partial result of the active job, which continues."""
        if self._job is not None:
            self._add_result(self._job, _ResultState.PROCESSING, is_partial=True)
            await self.send_result()

    def _add_result(self, job: Mapping[str, Any], state: int, *, is_partial: bool = False) -> None:
        self._results.append(
            {
                "ResultId": {"Id": f"R{next(self._numbers)}"},
                "HasTransferableDataOnFile": bool(self.transfer and self.transfer.content),
                "IsPartial": is_partial,
                "IsSimulated": True,
                "ResultState": int(state),
                **job,
                "CreationTime": datetime.now(UTC).replace(tzinfo=None),
                "ResultContent": [ua.Variant(value) for value in self.content],
            }
        )

    async def end_job(self, state: int = _ResultState.COMPLETED) -> None:
        """End the active job with a result; without one, return at once."""
        job, self._job = self._job, None
        if job is None:
            return
        self._add_result(job, state)
        self.finished.append(job["MeasId"]["Id"])
        await self._show("Operational", "Ready")
        await self.send_result()

    async def send_result(self) -> None:
        """Send the event of the last result, also when it was sent before."""
        data_type = self.device.server.get_node(ua.NodeId(_RESULT, self._index))
        definition = await data_type.read_data_type_definition()
        given = {name: value for name, value in self._results[-1].items() if name != "ResultContent"}
        fields = {
            field.Name: await self.device.structures.variant(field.DataType, given[field.Name])
            for field in definition.Fields
            if field.Name in given
        }
        content = ua.Variant(self._results[-1]["ResultContent"], ua.VariantType.Variant, is_array=True)
        await self.device.send_event(ua.NodeId(_RESULT_READY, self._index), fields | {"ResultContent": content})

    async def break_down(self) -> None:
        """Discard the active job and enter the state Error."""
        self._job = None
        await self._show("Error", None)

    async def forget(self) -> None:
        """Reset the state as a power cut does."""
        self._job = None
        self._results.clear()
        self.finished.clear()
        await self._show("Preoperational", None)

    async def _reset(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        await self.forget()
        return [_NO_ERROR]

    async def _select_automatic(self, _: ua.NodeId) -> list[ua.Variant]:
        if await self._state() != "Preoperational":
            return [_ERROR]
        await self._show("Operational", "Initialized")
        return [_NO_ERROR]

    async def _prepare_recipe(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        external, _internal = await self.device.plain(arguments)
        if await self._state() != "Operational":
            return [await self._id(_RECIPE_ID, None), ua.Variant(Value=False), _ERROR]
        await self._show("Operational", "Ready")
        if self.fault is VisionFault.SLOW_RECIPE:
            # The camera is Ready, but with the previous recipe.
            self._preparing.put_nowait(external["Id"])
            return [await self._id(_RECIPE_ID, external["Id"]), ua.Variant(Value=False), _NO_ERROR]
        self.recipes.append(external["Id"])
        return [await self._id(_RECIPE_ID, external["Id"]), ua.Variant(Value=True), _NO_ERROR]

    async def _start_single_job(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        meas_id, part_id, recipe_id, *_others = await self.device.plain(arguments)
        _, automatic = await self._machines()
        if await _name(automatic) != "Ready" or self.fault is VisionFault.REFUSED:
            return [await self._id(_JOB_ID, None), _ERROR]
        job_id = f"V{next(self._numbers)}"
        self._job = {"JobId": {"Id": job_id}, "MeasId": meas_id, "PartId": part_id, "ExternalRecipeId": recipe_id}
        self.begun.append(meas_id["Id"])
        self.jobs.append((meas_id["Id"], self.recipes[-1] if self.recipes else None))
        await self._show("Operational", "SingleExecution")
        self._started.put_nowait(self._job)
        return [await self._id(_JOB_ID, job_id), _NO_ERROR]

    async def _stop(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        job, self._job = self._job, None
        if job is None:
            return [_ERROR]
        self.stopped.append(job["MeasId"]["Id"])
        await self._show("Operational", "Ready")
        return [_NO_ERROR]

    async def _get_result_by_id(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        result_id, _timeout = await self.device.plain(arguments)
        found = [entry for entry in self._results if entry["ResultId"] == result_id]
        result = await self.device.structures.variant(ua.NodeId(_RESULT, self._index), found[0] if found else None)
        return [ua.Variant(0, ua.VariantType.UInt32), result, _NO_ERROR if found else _ERROR]

    async def _get_result_list(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        _state, meas_id, *_others, most, start, _timeout = await self.device.plain(arguments)
        found = [result for result in self._results if result["MeasId"]["Id"] == meas_id["Id"]]
        if not self.lists_results:
            return [ua.Variant(Value=True), *(ua.Variant(0, ua.VariantType.UInt32),) * 2, ua.Variant(), _ERROR]
        page = found[start : start + most if most else None]
        results = await self.device.structures.variant(ua.NodeId(_RESULT, self._index), page, is_array=True)
        count, handle = ua.Variant(len(page), ua.VariantType.UInt32), ua.Variant(0, ua.VariantType.UInt32)
        return [ua.Variant(Value=start + len(page) >= len(found)), count, handle, results, _NO_ERROR]

    async def _id(self, data_type: int, text: str | None) -> ua.Variant:
        return await self.device.structures.variant(ua.NodeId(data_type, self._index), {"Id": text})

    async def _machines(self) -> tuple[Node, Node]:
        machine = await self._system.get_child(f"{self._index}:VisionStateMachine")
        return machine, await machine.get_child(f"{self._index}:AutomaticModeStateMachine")

    async def _state(self) -> str:
        return await _name((await self._machines())[0])

    async def _show(self, state: str, mode: str | None) -> None:
        for machine, name in zip(await self._machines(), (state, mode), strict=True):
            # Cameras differ in the state of an inactive machine: this one keeps the last state.
            if name is not None:
                current = await machine.get_child("0:CurrentState")
                await current.write_value(ua.LocalizedText(self.state_texts.get(name, name), "en"))
                await (await current.get_child("0:Id")).write_value(ua.NodeId(STATES[name], self._index))


async def _name(machine: Node) -> str:
    """Return the name of the current state of a machine; empty when it never had one."""
    identifier = await (await machine.get_child(["0:CurrentState", "0:Id"])).read_value()
    return next((name for name, number in STATES.items() if identifier and number == identifier.Identifier), "")
