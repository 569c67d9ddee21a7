"""Equipment of the kind openprotocol at the strict controller, whose tool keeps a physical log of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from edge.features.openprotocol.device import OpenProtocolTimes
from edge.features.openprotocol.equipment import open_openprotocol_equipment
from edge.features.openprotocol.leased_equipment import LeasedEquipment, LeaseOf, only_lease
from edge.features.openprotocol.protocol.session import SessionTimes
from edge.features.openprotocol.settings import OpenProtocolSettings
from edge.station.equipment import Command
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES, TYPE_ID, WORK
from tests.equipment.recording_station import RecordingStation
from tests.outside.devices.openprotocol_controller import StrictController, open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits

TIMES = OpenProtocolTimes(SessionTimes(connect=10.0, answer=2.0), poll=0.2, curves=5.0)


@dataclass
class StrictBench:
    """A strict controller, the equipment that works with it, and its station."""

    controller: StrictController
    equipment: LeasedEquipment
    station: RecordingStation


def bolt(number: int, **parameters: Any) -> Command:
    """Return the command of a job for one bolt."""
    job_id = f"J{number}"
    parameters = {"parameter_set": 3, "vin": job_id} | parameters
    return replace(WORK, command_id=WORK.command_id.replace("J1", job_id), job_id=job_id, parameters=parameters)


def memory_at(controller: StrictController) -> str:
    """Return the name of the memory of the equipment at a controller."""
    return f"wrench@127.0.0.1:{controller.port}"


@asynccontextmanager
async def attached(
    controller: StrictController,
    station: RecordingStation | None = None,
    *,
    times: OpenProtocolTimes = TIMES,
    lease_of: LeaseOf = only_lease,
    **keys: Any,
) -> AsyncIterator[StrictBench]:
    """Connect equipment to a controller; it may not be connected yet. `keys` are settings of the equipment."""
    station = station or RecordingStation()
    url = f"tcp://127.0.0.1:{controller.port}"
    settings = OpenProtocolSettings(kind="openprotocol", type_ids=(TYPE_ID,), url=url, **keys)
    async with open_openprotocol_equipment("wrench", settings, station, SCOPES, lease_of, times=times) as equipment:
        yield StrictBench(controller, equipment, station)


@asynccontextmanager
async def strict(
    wait_until: WaitUntil, quirks: Quirks | None = None, habits: Habits | None = None, **keys: Any
) -> AsyncIterator[StrictBench]:
    """Open a controller and the equipment at it, and wait for the connection."""
    async with open_strict_controller(quirks, habits) as controller, attached(controller, **keys) as bench:
        await wait_until(lambda: bench.equipment.connected)
        yield bench


async def completed(bench: StrictBench, wait_until: WaitUntil, command: Command) -> dict[str, Any]:
    """Send a command, wait for its answer, settle it, and return its data."""
    await bench.equipment.send(command)
    await wait_until(lambda: command.command_id in bench.station.outcomes())
    data: dict[str, Any] = bench.station.outcomes()[command.command_id]
    return data
