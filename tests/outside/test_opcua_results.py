"""A plain OPC UA client reads the verdict of a job and the titles of its recipe; the MES learns who stopped a job."""

import asyncio
import json
from typing import Any

import pytest
from asyncua import Client, ua

from tests.opcua_client import patient_client
from tests.outside.conftest import Plant
from tests.outside.plant import TIGHTENING
from tests.outside.servers import SCOPE

pytestmark = pytest.mark.slow

JOBS = f"ns=8;s={SCOPE}/MachineryBuildingBlocks/JobManagement"
STEP = f"ns=9;s={SCOPE}/J2/Steps/Tighten"
TITLE = {"en": "Tighten the bolt", "de": "Schraube anziehen"}
RECIPE = TIGHTENING | {
    "steps": [{"name": "Tighten", "initial": True, "title": TITLE}, {"name": "Done"}],
    "verdict": "actions.tighten.result.torque.value >= 80",
}
NO_COMMENT = ua.Variant([], ua.VariantType.LocalizedText, is_array=True)


async def call(client: Client, part: str, method: str, *arguments: ua.Variant) -> Any:
    """Call a method of the jobs; return its outputs."""
    node = client.get_node(f"{JOBS}/{part}")
    return await node.call_method(ua.NodeId.from_string(f"{JOBS}/{part}/{method}"), *arguments)


async def verdict_of(port: int, job_id: str) -> Any:
    """Return the verdict in the response that a client asks for."""
    async with patient_client(f"opc.tcp://127.0.0.1:{port}") as client:
        await client.load_data_type_definitions()
        job = ua.Variant(job_id, ua.VariantType.String)
        response, status = await call(client, "JobOrderResults", "RequestJobResponseByJobOrderID", job)
        assert status == 1
        return {item.ID: item.Value for item in response.JobResponseData}["Verdict"].Value


async def title_of_step(port: int, language: str) -> tuple[str, str]:
    """Return the DisplayName of the step at work for a session in a language: its text and its locale."""
    client = patient_client(f"opc.tcp://127.0.0.1:{port}")
    client.set_locale([language])
    async with client:
        name = await client.get_node(STEP).read_display_name()
        return str(name.Text), str(name.Locale)


async def stop(port: int, job_id: str) -> Any:
    """Stop a job."""
    async with patient_client(f"opc.tcp://127.0.0.1:{port}") as client:
        job = ua.Variant(job_id, ua.VariantType.String)
        return await call(client, "JobOrderControl", "Stop", job, NO_COMMENT)


def test_client_reads_verdict_and_titles_and_is_named_by_its_stop(plant: Plant) -> None:
    plant.mes.configure(recipe=RECIPE)
    for job_id, torque, verdict in (("J0", 70.5, "not_ok"), ("J1", 85.2, "ok")):
        plant.wrench.torque = lambda torque=torque: torque  # type: ignore[misc]
        assert plant.mes.start_job(job_id).status == 1
        plant.mes.wait_for_state(job_id, "Ended")
        assert asyncio.run(verdict_of(plant.opcua_port, job_id)) == verdict
    plant.wrench.holds = True
    assert plant.mes.start_job("J2").status == 1
    plant.wrench.client.wait(lambda: len(plant.wrench.starts()) == 3, "the tool has the command", 60)
    for language, title in TITLE.items():
        assert asyncio.run(title_of_step(plant.opcua_port, language)) == (title, language)
    assert asyncio.run(stop(plant.opcua_port, "J2")) == 1
    plant.mes.client.wait(lambda: "stopped by" in json.dumps(plant.mes.result("J2")), "the result of the job", 60)
    found = {value["ID"]: value["Value"] for value in plant.mes.result("J2")["JobResponseData"] if "Value" in value}
    assert found["Error"] == "stopped by anonymous over OPC UA"
