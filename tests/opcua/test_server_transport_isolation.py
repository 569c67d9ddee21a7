"""An OPC UA client in the same process does not affect the server, although both use the same namespace index."""

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from asyncua import Server, ua
from asyncua.common.manage_nodes import create_encoding
from asyncua.common.structures104 import new_struct_field
from asyncua.common.utils import Buffer
from asyncua.ua.ua_binary import extensionobject_from_binary, extensionobject_to_binary

from edge.model.isa95 import JobOrder, JobOrderAndState, JobResponse, OrderCall, State
from edge.model.job_state import JobState, JobStatus, state_entries
from edge.model.user import Role
from edge.uaserver.encoding import ENCODING_ID, extension_object
from edge.uaserver.namespaces import Namespace
from tests.opcua_client import patient_client
from tests.uaserver.running import Space, Station, response, served
from tests.uaserver.test_encoding import DATA_TYPE, ORDER
from tests.uaserver.test_methods import NO_COMMENT, ask

pytestmark = pytest.mark.asyncio(loop_scope="module")

# The output of a client in another process: the ids of the listed orders, their first parameter, the response ids.
ELSEWHERE = """
import asyncio, sys
from asyncua import Client, ua

async def main(endpoint, orders, responses):
    async with Client(endpoint, timeout=60, watchdog_intervall=60) as client:
        await client.load_data_type_definitions()
        for entry in await client.get_node(orders).read_value():
            print(type(entry).__name__, entry.JobOrder.JobOrderID, entry.JobOrder.JobOrderParameters[0].Value.Value)
        for entry in await client.get_node(responses).read_value():
            print(type(entry).__name__, entry.JobOrderID)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def _camera_client() -> AsyncIterator[None]:
    """A client to a camera; the camera has other structures with the ids of the server's structures."""
    for kind in ENCODING_ID:
        ua.extension_objects_by_typeid.pop(ENCODING_ID[kind], None)
        ua.extension_objects_by_datatype.pop(ua.NodeId(DATA_TYPE[kind], Namespace.ISA95), None)
    camera = Server()
    await camera.init()
    camera.set_endpoint("opc.tcp://127.0.0.1:0")
    for index in range(2, Namespace.ISA95 + 1):
        assert await camera.register_namespace(f"urn:camera:{index}") == index
    for kind in (JobOrder, JobOrderAndState, JobResponse, State):
        data_type = await camera.nodes.base_structure_type.add_data_type(
            ua.NodeId(DATA_TYPE[kind], Namespace.ISA95), ua.QualifiedName(f"Camera{kind.__name__}", Namespace.ISA95)
        )
        encoding = await create_encoding(data_type, ENCODING_ID[kind], ua.QualifiedName("Default Binary"))
        definition = ua.StructureDefinition(
            DefaultEncodingId=encoding.nodeid,
            BaseDataType=camera.nodes.base_structure_type.nodeid,
            Fields=[new_struct_field("Exposure", ua.VariantType.Double)],
        )
        await data_type.write_data_type_definition(definition)
    async with camera, patient_client(f"opc.tcp://127.0.0.1:{camera.bserver.port}") as client:
        await client.load_data_type_definitions()
        yield


@pytest.mark.usefixtures("_camera_client")
async def test_asyncua_decodes_a_job_order_as_a_camera_type() -> None:
    # When this fails, remove `services.read_calls` and the table in `encoding.py`.
    read = extensionobject_from_binary(Buffer(extensionobject_to_binary(extension_object(ORDER))))
    assert type(read).__name__ == "CameraJobOrder"


@pytest.mark.usefixtures("_camera_client")
async def test_orders_are_unaffected_by_the_types_of_a_camera_client() -> None:
    station = Station()
    async with served(station=station, role=Role.ENGINEER) as server, patient_client(server.endpoint) as client:
        space = Space(client, await client.get_namespace_array())
        result = await ask(space, "Store", ua.Variant(extension_object(ORDER)), NO_COMMENT)
        assert [output.Value for output in result.OutputArguments] == [1]
        assert station.calls[0].arguments == OrderCall(job_order=ORDER)
        entry = JobOrderAndState(job_order=ORDER, state=state_entries(JobStatus(JobState.ENDED)))
        server.show("station-1", entry, response(ORDER.job_order_id))
        places = [(await space.job_order_list()).nodeid, (await space.response_list()).nodeid]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ELSEWHERE, server.endpoint, *(place.to_string() for place in places)),
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
    assert output.decode().splitlines() == [
        "ISA95JobOrderAndStateDataType job-1 42.5",
        "ISA95JobResponseDataType job-1",
    ]
