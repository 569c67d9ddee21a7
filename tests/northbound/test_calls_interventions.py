"""The MES and sidecars intervene in a job; a second person is required if configured."""

from typing import Any

import pytest

from edge.foundation.instant import now_ms
from edge.model.event_types import INTERVENE_TYPE, METHOD_TYPE
from edge.model.isa95 import ReturnStatus, WorkMaster
from edge.model.recipe import RECIPE_DATASCHEMA
from edge.northbound.calls import CallHandler, CallServices
from edge.station.jobs import JobService
from edge.store import resources
from edge.store.client import Store
from tests.northbound.calling import SCOPE, Station, opened_station, order
from tests.northbound.test_calls_faults import call, status
from tests.station.plant import until


@pytest.fixture
async def station(store: Store) -> Station:
    return await opened_station(store)


@pytest.fixture
def calls(store: Store, station: Station) -> CallHandler:
    service = JobService(store, station.runs, max_job_orders=1000, dedupe_ms=60_000)
    return CallHandler("urn:edge", (SCOPE,), store, CallServices(service, station.settings), now_ms)


def intervention(**members: Any) -> dict[str, Any]:
    return {"JobOrderID": "J1", "Kind": "complete", "Step": "S", "By": "anna", "Reason": "seen"} | members


async def test_the_mes_completes_a_step_once(calls: CallHandler, station: Station, store: Store) -> None:
    recipe = {
        "steps": [{"name": "S", "initial": True}, {"name": "T"}],
        "transitions": [{"source": "S", "target": "T", "condition": "true"}],
        "actions": [
            {"name": "scan", "step": text, "qualifier": "N", "interaction": "pull_event", "type_id": "scan.v1"}
            for text in ("S", "T")
        ],
        "interventions": ["complete"],
    }
    master = WorkMaster(id="attended", data=recipe, dataschema=RECIPE_DATASCHEMA)
    await store.commit(resources.save_work_master(store.keys, SCOPE, master))
    async with station.at_work():
        attended = order("J1") | {"JobOrder": order("J1")["JobOrder"] | {"WorkMasterID": [{"ID": "attended"}]}}
        cloud_event = await calls.answer(call(METHOD_TYPE.format("StoreAndStart"), "1", attended))
        assert status(cloud_event) == ReturnStatus.NO_ERROR

        async def runs() -> bool:
            return await station.runs.load("J1") is not None

        await until(runs, 60)
    for _ in range(2):
        answer = await calls.answer(call(INTERVENE_TYPE, "2", intervention()))
        assert status(answer) == ReturnStatus.NO_ERROR
    loaded = await station.runs.load("J1")
    assert loaded
    assert loaded.stored.run.active == {"T"}
    refused = await calls.answer(call(INTERVENE_TYPE, "3", intervention(Kind="skip", Action="scan", Step="")))
    assert "does not allow skip" in (refused.mdcserrormessage or "")
    for faulty in ({"Kind": "jump"}, {"Reason": ""}, {"By": ""}):
        answer = await calls.answer(call(INTERVENE_TYPE, f"4{faulty}", intervention(**faulty)))
        assert answer.mdcserrorkind == "invalid_payload"
