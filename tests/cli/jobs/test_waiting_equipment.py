"""`edge jobs why` names the problem of the equipment whose answer a job waits for."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.access.instances import process_token
from edge.model.equipment_connection import ConnectionState
from edge.model.equipment_health import EquipmentHealth, EquipmentReport, OpenSafing
from edge.model.job_state import Cause
from edge.store import equipment_memory, instance_leases
from edge.store.client import Store
from tests.cli.calling import Edge
from tests.station.plant import TIGHTEN, FakeEquipment, Plant, order, until_true

WRONG, LATER = "7: its program is not the commanded one", 4_102_444_800_000
LOCKED = "locked by another system"
REFUSED = ConnectionState(connected=False, since=1, fault="refused", reason="cannot connect to 10.0.0.5:4545")
LINE = f"  equipment wrench of gateway line-1: {LOCKED}"
FOUND = {"name": "wrench", "gateway": "line-1", "problem": LOCKED}


@pytest.fixture
async def waiting_job(settings_file: Path, plant: Plant, tool: FakeEquipment) -> None:
    """Start a job that waits for an answer of `wrench`; `eye` takes other actions."""
    with settings_file.open("a") as settings:
        settings.write(f'\n[mqtt]\nurl = "mqtt://127.0.0.1:1"\n[southbound.wrench]\ntype_ids = ["{TIGHTEN}"]\n')
        settings.write('[southbound.eye]\ntype_ids = ["com.example.other"]\n')
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: "a" in tool.received())


def wrench(*, connected: bool | None, problem: str = "") -> EquipmentHealth:
    """Return the state of `wrench`."""
    return EquipmentHealth(name="wrench", kind="mqtt", connected=connected, problem=problem)


async def report(store: Store, gateway: str, health: EquipmentHealth) -> None:
    """Write the report of a gateway with one piece of equipment and `eye`, which has a problem."""
    eye = EquipmentHealth(name="eye", kind="mqtt", problem="no lens")
    await instance_leases.register(store, ("station-1",), gateway)
    await store.commit(
        equipment_memory.save_report(store.keys, gateway, EquipmentReport(at=1, equipment=(health, eye)))
    )


@pytest.mark.usefixtures("waiting_job")
@pytest.mark.parametrize(
    ("health", "reason"),
    [
        (wrench(connected=True, problem=LOCKED), LOCKED),
        (wrench(connected=False, problem="stale"), "not connected"),
        (replace(wrench(connected=False), connection=REFUSED), str(REFUSED.text)),
        (replace(wrench(connected=True), last_late=WRONG, last_late_at=LATER), f"a result did not count: {WRONG}"),
        (replace(wrench(connected=True), last_late=WRONG, last_late_at=1), None),
        (wrench(connected=True), None),
        (wrench(connected=None), None),
    ],
    ids=["problem", "not connected", "refused", "late result", "earlier late result", "ready", "no presence reported"],
)
async def test_problem_of_awaited_equipment_is_named(
    edge: Edge, store: Store, health: EquipmentHealth, reason: str | None
) -> None:
    await instance_leases.acquire(store, "line-1", process_token())
    await report(store, "line-1", health)
    lines = (await edge("jobs", "why", "J1")).output.splitlines()
    found = json.loads((await edge("jobs", "why", "J1", "--json")).output)["equipment"]
    assert [line for line in lines if "equipment" in line] == ([LINE.replace(LOCKED, reason)] if reason else [])
    assert found == ([FOUND | {"problem": reason}] if reason else [])


@pytest.mark.usefixtures("waiting_job")
async def test_report_of_a_gateway_that_does_not_run_is_left_out(edge: Edge, store: Store) -> None:
    await report(store, "line-1", wrench(connected=True, problem=LOCKED))
    assert json.loads((await edge("jobs", "why", "J1", "--json")).output)["equipment"] == []


@pytest.mark.usefixtures("waiting_job")
async def test_ended_job_names_the_tool_that_is_not_confirmed_as_disabled(
    edge: Edge, store: Store, plant: Plant
) -> None:
    release = OpenSafing(what="release", since=1_700_000_000_000, tries=7, reason="MID 0042 declined")
    unsafe = EquipmentHealth(name="wrench", kind="openprotocol", connected=True, safing=1, open_safing=(release,))
    await plant.ask(Cause.ABORT, "J1")
    await instance_leases.acquire(store, "line-1", process_token())
    await report(store, "line-1", unsafe)
    (found,) = json.loads((await edge("jobs", "why", "J1", "--json")).output)["equipment"]
    since = "2023-11-14 22:13:20Z"
    problem = f"the tool may still be active, not confirmed since {since}: release: MID 0042 declined"
    assert found == {"name": "wrench", "gateway": "line-1", "problem": problem}


async def test_job_that_has_not_started_waits_for_no_equipment(edge: Edge, plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    assert json.loads((await edge("jobs", "why", "J1", "--json")).output)["equipment"] == []
