"""An object has one form: `--json` of the command line, the HTTP API and the event have the same members and values."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec

from edge.access.instances import process_token
from edge.access.login import Users
from edge.features.flows.redis_state import RedisFlowState
from edge.features.telemetry.alarm_publisher import alarm_event
from edge.model.equipment_health import EquipmentReport
from edge.model.user import Session
from edge.store import equipment_memory, instance_leases, logins, stream_of_samples
from edge.store import kept_alarms as alarms
from edge.store.client import Store
from tests.access.test_locks import JOB, put
from tests.cli.calling import Edge
from tests.features.fleet.cli.test_fleet import put as put_component
from tests.features.flows.gateways import Plant as FlowPlant
from tests.features.flows.test_page import REPORT
from tests.features.page.serving import WRENCH, Browser, services_of, serving
from tests.features.telemetry.test_alarm_requests import raised
from tests.station.plant import SCOPE, Clock, FakeEquipment, Plant, until_true

SAMPLE = '{"at": 1700000000000, "tag": "wrench.torque", "value": 85.2, "process": "P1"}'


def sent(data: object) -> Any:
    """Return data as the payload of an event has them."""
    return json.loads(msgspec.json.encode(data))


async def test_alarm_has_one_form(store: Store, edge: Edge, browser: Browser) -> None:
    alarm = await raised(store, "wrench.temp")
    (change,) = await alarms.newest(store, 1)
    eve = await browser.logged_in("eve")
    (on_page,) = (await eve.get("/api/v1/alarms")).json["alarms"]
    (listed,) = json.loads((await edge("alarms", "list", "--json")).output)
    event = sent(alarm_event("urn:x", "s1", change, 0).data)
    assert json.loads((await edge("alarms", "show", alarm.id, "--json")).output) == listed == on_page == event["alarm"]
    (changed,) = (await eve.get("/api/v1/alarms/history")).json["changes"]
    (history,) = json.loads((await edge("alarms", "history", "--json")).output)
    assert changed == history == event


async def test_lock_has_one_form(store: Store, edge: Edge, browser: Browser) -> None:
    await put(store, JOB, "J9", "anna", "ben")
    engineer = await browser.logged_in("max")
    on_page = (await engineer.get("/api/v1/locks")).json["locks"]
    listed = json.loads((await edge("locks", "list", "--json")).output)
    assert (listed, listed[-1]["waiters"]) == (on_page, ["ben"])


async def test_session_has_one_form(store: Store, edge: Edge, browser: Browser) -> None:
    session = Session(user="anna", role="engineer", way="opcua", instance="gw-1", since=1_700_000_000_000)
    await store.commit(logins.put_session(store.keys, "1" * 32, session, 60_000))
    await store.commit(logins.touch_session(store.keys, "1" * 32, datetime(2026, 1, 2, tzinfo=UTC)))
    engineer = await browser.logged_in("max")
    on_page = (await engineer.get("/api/v1/sessions")).json["sessions"]
    listed = json.loads((await edge("sessions", "list", "--json")).output)
    assert (listed, listed[0]["since"]) == (on_page, "2023-11-14T22:13:20.000Z")


async def test_job_has_one_form(edge: Edge, browser: Browser, clock: Clock) -> None:
    # The clock of the command runs: by it the command was sent long ago.
    clock.now += 60_000
    eve = await browser.logged_in("eve")
    on_page = {job["job_order_id"]: job for job in (await eve.get("/api/v1/jobs")).json["jobs"]}
    listed = {job["job_order_id"]: job for job in json.loads((await edge("jobs", "list", "--json")).output)}
    assert listed == on_page
    detail = without_ages((await eve.get("/api/v1/jobs/J1")).json)
    for command in ("show", "why"):
        shown = without_ages(json.loads((await edge("jobs", command, "J1", "--json")).output))
        assert {name: shown[name] for name in detail} == detail


def without_ages(detail: Any) -> Any:
    """Return a job without the times that change."""
    for action in detail["waits"]["actions"]:
        assert action.pop("age_seconds") >= 0
        del action["left_seconds"]
    for words in detail["waits"]["words"]:
        # The commands of the test know no equipment.
        del words["seconds"], words["of_seconds"], words["text"]
    return detail


async def test_result_has_one_form(edge: Edge, browser: Browser, plant: Plant, tool: FakeEquipment) -> None:
    await plant.answer(tool.commands[0], {"torque": {"value": 85.2, "unit": "N·m"}})
    eve = await browser.logged_in("eve")
    on_page = (await eve.get("/api/v1/jobs/J1/results")).json
    printed = json.loads((await edge("jobs", "results", "J1", "--json")).output)
    assert printed.pop("copies") == []
    assert (printed, printed["results"][0]["values"]) == (
        on_page,
        [{"name": "torque", "value": 85.2, "unit": "N·m"}],
    )


async def test_operation_has_one_form(edge: Edge, browser: Browser) -> None:
    await edge("operations", "schedule", "record", "--equipment", "wrench", "--at", "02:00", "--daily")
    engineer = await browser.logged_in("max")
    on_page = (await engineer.get("/api/v1/operations")).json["operations"]
    listed = json.loads((await edge("operations", "list", "--json")).output)
    shown = json.loads((await edge("operations", "show", listed[0]["id"], "--json")).output)
    assert (listed, [shown], shown["arguments"]) == (on_page, on_page, {"equipment": "wrench"})


async def test_equipment_has_one_form(store: Store, edge: Edge, browser: Browser, clock: Clock) -> None:
    await instance_leases.register(store, (SCOPE,), "edge")
    await instance_leases.acquire(store, "edge", process_token())
    report = EquipmentReport(at=clock(), equipment=(WRENCH,))
    await store.commit(equipment_memory.save_report(store.keys, "edge", report))
    eve = await browser.logged_in("eve")
    on_page = (await eve.get("/api/v1/equipment")).json["equipment"]
    listed = json.loads((await edge("equipment", "list", "--json")).output)
    assert (listed, listed[0]["connection"]["since"]) == (on_page, "2023-11-14T22:13:20.000Z")


async def test_flow_has_one_form(store: Store, edge: Edge, plant: Plant, users: Users) -> None:
    flows = FlowPlant(RedisFlowState(store))
    async with flows.gateway():
        await flows.run(REPORT)
        await flows.ended()
    await flows.service.stop("flow", "enough")
    async with serving(services_of(plant, users, ports={"flows": SimpleNamespace(service=flows.service)})) as browser:
        eve = await browser.logged_in("eve")
        (on_page,) = (await eve.get("/api/v1/flows")).json["flows"]
        detail = (await eve.get("/api/v1/flows/flow?cycle=0")).json
    assert json.loads((await edge("flows", "list", "--json")).output) == [on_page]
    shown = json.loads((await edge("flows", "show", "flow", "--cycle", "0", "--json")).output)
    assert (shown, shown["flow"], len(shown["cycle"]["nodes"])) == (detail, on_page, 2)


async def test_component_has_one_form(store: Store, edge: Edge, browser: Browser) -> None:
    await put_component(store, "gw-1", seen_s=1_700_000_000, labels={"line": "3"})
    eve = await browser.logged_in("eve")
    on_page = (await eve.get("/api/v1/fleet")).json["components"]
    listed = json.loads((await edge("fleet", "list", "--json")).output)
    shown = json.loads((await edge("fleet", "show", "gw-1", "--json")).output)
    assert (listed, [shown], shown["seen_at"]) == (on_page, on_page, "2023-11-14T22:13:20.000Z")


async def test_history_of_a_job_has_one_form(edge: Edge, browser: Browser, plant: Plant, tool: FakeEquipment) -> None:
    await plant.answer(tool.commands[0], {"torque": 85.2})
    await until_true(lambda: len(tool.commands) > 1)
    eve = await browser.logged_in("eve")
    on_page = (await eve.get("/api/v1/jobs/J1/history")).json
    assert json.loads((await edge("jobs", "history", "J1", "--json")).output) == on_page
    assert [decision["text"] for decision in on_page["decisions"]][:2] == ["start", "answer to a 1: done"]


async def test_tag_has_one_form(store: Store, edge: Edge, browser: Browser) -> None:
    await store.commit(stream_of_samples.save_last(store.keys, {"wrench.torque": SAMPLE}))
    eve = await browser.logged_in("eve")
    on_page = (await eve.get("/api/v1/tags")).json["tags"]
    listed = json.loads((await edge("tags", "list", "--json")).output)
    shown = json.loads((await edge("tags", "show", "wrench.torque", "--json")).output)
    assert (listed, shown, shown["process"]) == (on_page, on_page[0], "P1")
