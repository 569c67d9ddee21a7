"""Maintenance from outside: running jobs end, new jobs are refused or run later."""

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import msgpack
import pytest
from asyncua import Client, ua
from asyncua.ua.ua_binary import struct_from_binary

from tests.opcua_client import patient_client
from tests.outside.conftest import Plant
from tests.outside.plant import METHOD, order
from tests.outside.servers import SCOPE, wait_for

pytestmark = pytest.mark.slow

GERMAN = "Zelle 2 wird umgebaut"
ENGLISH = "Cell 2 is being rebuilt"
ADDITIONAL_INFO = 0x80
"""The bit of returnDiagnostics (OPC 10000-4, 7.32)."""
REFUSED = 16
"""ReturnStatus: unable to accept the job order."""


def test_drained_gateway_refuses_and_accepts_again_by_every_interface(plant: Plant) -> None:
    socket = plant.gateway.directory / "rpc.sock"
    settings = plant.gateway.settings
    settings.write_text(f'{settings.read_text()}\n[rpc]\nlisten = "unix://{socket}"\n')
    plant.gateway.stop()
    plant.gateway.start()
    plant.wrench.holds = True
    for name in ("J1", "J2", "J3"):
        assert plant.mes.start_job(name).status == 1
    wait_for(lambda: len(plant.wrench.starts()) == 3, "three jobs run")
    plant.gateway.cli("maintenance", "text", "Cell", ENGLISH)
    plant.gateway.cli("maintenance", "text", "de:Cell", GERMAN)
    shown = json.loads(plant.gateway.cli("maintenance", "on", "--message", "{$Cell}", "--drain", "--json"))
    assert shown["on"]
    assert shown["running_jobs"] == ["J1", "J2", "J3"]

    declined = plant.mes.start_job("over-mqtt", acceptlanguage="fr, de-AT;q=0.8")
    assert (declined.status, declined.data["Reason"]) == (REFUSED, GERMAN)
    assert plant.mes.start_job("over-mqtt", acceptlanguage="en").data["Reason"] == ENGLISH
    answer = asyncio.run(_publish(str(socket), "over-rpc", "de"))
    assert (answer["data"]["ReturnStatus"], answer["data"]["Reason"]) == (REFUSED, GERMAN)
    asyncio.run(_look(plant.opcua_port, _refused_over_opcua))

    plant.wrench.release()
    for name in ("J1", "J2", "J3"):
        plant.mes.wait_for_state(name, "Ended", 60)
    asyncio.run(_look(plant.opcua_port, _drained))
    plant.gateway.cli("maintenance", "off")
    wait_for(lambda: plant.mes.start_job("over-mqtt").status == 1, "it starts jobs again")
    assert asyncio.run(_publish(str(socket), "over-rpc", "de"))["data"] == {"ReturnStatus": 1}
    asyncio.run(_look(plant.opcua_port, _accepted_over_opcua))
    for name in ("over-mqtt", "over-rpc", "over-opcua"):
        plant.mes.wait_for_state(name, "Ended", 60)
    assert " 0 faults" in plant.gateway.cli("audit", "verify")


def test_stored_jobs_wait_for_the_end_of_maintenance_across_a_kill(plant: Plant) -> None:
    due = time.time() + 10
    late = {"JobOrder": {**order("J1")["JobOrder"], "StartTime": _utc(due)}}
    assert plant.mes.call("StoreAndStart", late).status == 1
    plant.gateway.cli("maintenance", "on", "--now")
    assert time.time() < due, "the machine is too busy for this test"
    plant.gateway.kill()
    plant.gateway.start()
    assert plant.mes.start_job("J2").status == REFUSED
    wait_for(lambda: time.time() > due + 1 and "J1" in plant.store.cli("keys", "*"), "the job is due")
    assert plant.wrench.starts() == []
    plant.gateway.cli("maintenance", "off")
    plant.mes.wait_for_state("J1", "Ended", 90)
    assert len(plant.wrench.starts()) == 1


def test_running_job_is_paused_and_its_resume_refused_until_the_end(plant: Plant) -> None:
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    wait_for(plant.wrench.starts, "the job runs")
    answer = plant.mes._ask(MAINTENANCE.format("On"), {"Now": True, "By": "anna", "Message": "fire"}, 20.0, {})  # noqa: SLF001
    assert (answer.data["On"], answer.data["Kind"], answer.data["By"]) == (True, "now", "anna")
    plant.mes.wait_for_state("J1", "Interrupted", 60)
    resumed = plant.mes.call("Resume", {"JobOrderID": "J1"})
    assert (resumed.status, resumed.data["Reason"]) == (REFUSED, "fire")
    assert plant.mes._ask(MAINTENANCE.format("Off"), None, 20.0, {}).data == {"ReturnStatus": 1, "On": False}  # noqa: SLF001
    assert plant.mes.call("Resume", {"JobOrderID": "J1"}).status == 1
    plant.wrench.release()
    plant.mes.wait_for_state("J1", "Ended", 60)
    shown = [
        value["action"] for load in map(json.loads, [plant.gateway.cli("audit", "list", "--json")]) for value in load
    ]
    assert {"maintenance on", "maintenance off"} <= set(shown)


MAINTENANCE = "com.github.aschamberger.microdcs.maintenance.{}.v1"


def _utc(instant: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(instant))


async def _publish(path: str, job: str, language: str) -> Any:
    """Call StoreAndStart over MessagePack-RPC, as docs/reference/rpc.md describes it."""
    reader, writer = await asyncio.open_unix_connection(path)
    event = {
        "specversion": "1.0",
        "id": str(uuid.uuid4()),
        "source": "/stand",
        "subject": SCOPE,
        "type": METHOD.format("StoreAndStart"),
        "acceptlanguage": language,
        "data": order(job),
    }
    writer.write(msgpack.packb([0, 1, "publish", [event]]))
    unpacker = msgpack.Unpacker()
    async with asyncio.timeout(60):
        while True:
            unpacker.feed(await reader.read(65_536))
            for kind, *rest in unpacker:
                if kind == 1:
                    _, error, result = rest
                    assert error is None, error
                    writer.close()
                    return result[0]


async def _look(port: int, look: Callable[[Client], Awaitable[None]]) -> None:
    # On a busy machine this client breaks its own connection after a second without an answer.
    client = patient_client(f"opc.tcp://127.0.0.1:{port}")
    client.locale = ["de-AT", "en"]
    activate = client.uaclient.activate_session

    async def activate_in_german(parameters: ua.ActivateSessionParameters) -> Any:
        parameters.LocaleIds = ["de-AT", "en"]
        return await activate(parameters)

    client.uaclient.activate_session = activate_in_german
    async with client:
        await look(client)


async def _call(client: Client, job: str) -> tuple[int, str]:
    """Call StoreAndStart; return the ReturnStatus, and the reason in the diagnostics of the answer."""
    jobs = await client.get_namespace_index("http://opcfoundation.org/UA/ISA95-JOBCONTROL_V2/")
    machine = await _machine(client)
    control = await machine.get_child(
        await _path(client, "MachineryBuildingBlocks", "JobManagement", "JobOrderControl")
    )
    await client.load_data_type_definitions()
    job_order = ua.ISA95JobOrderDataType(JobOrderID=job)
    job_order.WorkMasterID = [ua.ISA95WorkMasterDataType(ID="WM-1")]
    comment = ua.Variant([], ua.VariantType.LocalizedText, is_array=True)
    request = ua.CallMethodRequest(ObjectId=control.nodeid)
    request.MethodId = (await control.get_child(f"{jobs}:StoreAndStart")).nodeid
    request.InputArguments = [ua.Variant(job_order, ua.VariantType.ExtensionObject), comment]
    asked = ua.CallRequest()
    asked.RequestHeader.ReturnDiagnostics = ADDITIONAL_INFO
    asked.Parameters.MethodsToCall = [request]
    response = struct_from_binary(ua.CallResponse, await client.uaclient.protocol.send_request(asked))
    response.ResponseHeader.ServiceResult.check()
    reasons = [info.AdditionalInfo for info in response.DiagnosticInfos]
    return response.Results[0].OutputArguments[0].Value, reasons[0] if reasons else ""


async def _machine(client: Client) -> Any:
    machinery = await client.get_namespace_index("http://opcfoundation.org/UA/Machinery/")
    machines = await client.nodes.objects.get_child(f"{machinery}:Machines")
    # Organized by the folder, and notified through it.
    found = {child for child in await machines.get_children() if (await child.read_browse_name()).Name == SCOPE}
    (machine,) = found
    return machine


async def _path(client: Client, *names: str) -> list[str]:
    """Return a browse path below a machine; each name occurs in one namespace only."""
    uris = {
        "JobManagement": "http://opcfoundation.org/UA/Machinery/Jobs/",
        "JobOrderControl": "http://opcfoundation.org/UA/Machinery/Jobs/",
        "CurrentState": "http://opcfoundation.org/UA/",
        "Id": "http://opcfoundation.org/UA/",
    }
    found = [await client.get_namespace_index(uris.get(n, "http://opcfoundation.org/UA/Machinery/")) for n in names]
    return [f"{index}:{name}" for index, name in zip(found, names, strict=True)]


async def _states(client: Client) -> tuple[str, str]:
    machine = await _machine(client)
    names = []
    for name in ("MachineryItemState", "MachineryOperationMode"):
        node = await machine.get_child(await _path(client, "MachineryBuildingBlocks", name, "CurrentState"))
        names.append((await node.read_value()).Text)
    return names[0], names[1]


async def _refused_over_opcua(client: Client) -> None:
    assert await _states(client) == ("Executing", "Maintenance")
    assert await client.get_node(ua.NodeId(ua.ObjectIds.Server_ServiceLevel)).read_value() == 0
    assert await _call(client, "over-opcua") == (REFUSED, GERMAN)
    gateway = await client.nodes.objects.get_child(
        [f"{await client.get_namespace_index('urn:microdcs-edge:types')}:Gateway"]
    )
    types = await client.get_namespace_index("urn:microdcs-edge:types")
    message = await gateway.get_child([f"{types}:Maintenance", f"{types}:Message"])
    assert (await message.read_value()).Text == GERMAN


async def _drained(client: Client) -> None:
    for _ in range(600):
        if await _states(client) == ("OutOfService", "Maintenance"):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(await _states(client))


async def _accepted_over_opcua(client: Client) -> None:
    assert await _call(client, "over-opcua") == (1, "")
    assert (await _states(client))[1] == "Processing"
    assert await client.get_node(ua.NodeId(ua.ObjectIds.Server_ServiceLevel)).read_value() == 255
