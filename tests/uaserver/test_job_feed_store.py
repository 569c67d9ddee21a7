"""A real server with a real store: it shows the allowed resources, and every change before a Good answer."""

from collections.abc import Sequence
from typing import Any

import pytest
from asyncua import Client, ua

from edge.foundation.task_group import background_task
from edge.model.acceptance import ResourceKind
from edge.model.isa95 import JobOrder, ReturnStatus, WorkMaster
from edge.model.user import Role
from edge.station.job_call import CallAnswer, JobCall
from edge.station.jobs import JobService
from edge.station.runs import Runs
from edge.station.settings import WORK_MASTER, SettingsMethod, StationSettings
from edge.store import resources
from edge.store.client import Store
from edge.uaserver.encoding import extension_object
from edge.uaserver.job_feed import show_jobs
from edge.uaserver.namespaces import Namespace
from tests.conftest import WaitUntil
from tests.opcua_client import patient_client
from tests.uaserver.running import Station, served

pytestmark = pytest.mark.slow

CONTROL = "station-1/MachineryBuildingBlocks/JobManagement/JobOrderControl"


class RealStation(Station):
    """A station that executes calls with the real job service."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._jobs = JobService(store, Runs(store, lambda: 1_000_000, keep_ended_ms=60_000), 100, 60_000)

    async def call(self, call: JobCall) -> CallAnswer:
        return await self._jobs.call(call)


async def value(client: Client, name: str) -> Any:
    return await client.get_node(ua.NodeId(f"{CONTROL}/{name}", Namespace.MACHINES)).read_value()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (ResourceKind.EQUIPMENT, "EquipmentID"),
        (ResourceKind.PERSONNEL, "PersonnelID"),
        (ResourceKind.MATERIAL_CLASS, "MaterialClassID"),
        (ResourceKind.MATERIAL_DEFINITION, "MaterialDefinitionID"),
        (ResourceKind.PHYSICAL_ASSET, "PhysicalAssetID"),
    ],
)
async def test_allowed_resources_are_those_of_the_store(
    store: Store, wait_until: WaitUntil, kind: ResourceKind, name: str
) -> None:
    await store.commit(resources.allow(store.keys, kind, "station-1", ["b", "a"]))
    async with (
        served() as server,
        background_task(show_jobs(store, server, ["station-1"]), "feed"),
        patient_client(server.endpoint) as client,
    ):
        shown: list[Any] = []

        async def read() -> None:
            while not shown or shown[-1] != ["a", "b"]:
                shown.append(await value(client, name))

        async with background_task(read(), "reading"):
            await wait_until(lambda: shown and shown[-1] == ["a", "b"])


async def test_changed_limits_of_another_instance_are_shown(store: Store, wait_until: WaitUntil) -> None:
    async with (
        served() as server,
        background_task(show_jobs(store, server, ["station-1"]), "feed"),
        patient_client(server.endpoint) as client,
    ):
        assert await value(client, "MaxDownloadableJobOrders") == 1000
        limit = {"max_downloadable_job_orders": 7}
        await StationSettings(store).apply("station-1", "jobacceptance", SettingsMethod.PUT, limit)
        shown: list[Any] = []

        async def read() -> None:
            while not shown or shown[-1] != 7:
                shown.append(await value(client, "MaxDownloadableJobOrders"))

        async with background_task(read(), "reading"):
            await wait_until(lambda: shown and shown[-1] == 7)


async def test_a_work_master_that_another_instance_replaced_is_shown(store: Store, wait_until: WaitUntil) -> None:
    await StationSettings(store).apply("station-1", WORK_MASTER, SettingsMethod.PUT, [{"ID": "axle"}])
    async with (
        served() as server,
        background_task(show_jobs(store, server, ["station-1"]), "feed"),
        patient_client(server.endpoint) as client,
    ):
        await client.load_data_type_definitions()
        shown: list[Any] = []

        async def read() -> None:
            while not shown or shown[-1] is None:
                masters = await value(client, "WorkMaster")
                shown.append(masters[0].Description.Text if masters and masters[0].Description else None)

        async with background_task(read(), "reading"):
            await wait_until(lambda: shown)
            replaced = [{"ID": "axle", "Description": {"Text": "second"}}]
            await StationSettings(store).apply("station-1", WORK_MASTER, SettingsMethod.PUT, replaced)
            await wait_until(lambda: shown[-1] == "second")


async def test_a_list_read_after_a_good_answer_shows_the_change(store: Store) -> None:
    await store.commit(resources.save_work_master(store.keys, "station-1", WorkMaster(id="axle")))
    feed = served(station=RealStation(store), role=Role.ENGINEER)
    async with (
        feed as server,
        background_task(show_jobs(store, server, ["station-1"]), "feed"),
        patient_client(server.endpoint) as client,
    ):
        for number in range(20):
            order = JobOrder(job_order_id=f"job-{number}", work_master_id=(WorkMaster(id="axle"),))
            answer = await call(client, "Store", order)
            assert answer == ReturnStatus.NO_ERROR
            assert len(await value(client, "JobOrderList")) == number + 1


async def call(client: Client, method: str, order: JobOrder) -> int:
    comment = ua.Variant([], ua.VariantType.LocalizedText, is_array=True)
    arguments: Sequence[ua.Variant] = (ua.Variant(extension_object(order), ua.VariantType.ExtensionObject), comment)
    request = ua.CallMethodRequest(
        ua.NodeId(CONTROL, Namespace.MACHINES), ua.NodeId(f"{CONTROL}/{method}", Namespace.MACHINES), list(arguments)
    )
    (result,) = await client.uaclient.call([request])
    status: int = result.OutputArguments[-1].Value
    return status
