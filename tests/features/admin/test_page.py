"""The administration at the page and over the HTTP API: what people see, what they may change, what is recorded."""
# ruff: noqa: F811 - the arguments are the fixtures of these names

import json

import pytest
import pytest_asyncio

from edge.access.instances import process_token
from edge.features.page.services import WebServices
from edge.model.equipment_connection import ConnectionFault, ConnectionState
from edge.model.equipment_health import EquipmentHealth, EquipmentReport, OpenSafing
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import Phase
from edge.store import audit, dead_letters, equipment_memory, instance_leases
from edge.store.client import Store
from edge.store.dead_letters import Letter, LetterKind, RefusedMessage, record_refusal
from edge.store.equipment_memory import SafingCommand
from tests.cli.calling import Edge
from tests.cli.conftest import edge, settings_file  # noqa: F401 - fixtures
from tests.features.page.conftest import browser, clock, plant, services, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import Browser
from tests.station.plant import SCOPE, TIGHTEN, FakeEquipment, Plant, obliging, order

pytestmark = pytest.mark.slow

AT = 1_700_000_000_000
STOP = SafingCommand(
    phase=Phase.STOP,
    command_id="J1/R/a/1",
    type_id=TIGHTEN,
    scope=SCOPE,
    job_id="J1",
    correlation_id="c",
    action="a",
    attempt=1,
    since=0,
)
WRENCH = EquipmentHealth(
    name="wrench",
    kind="mqtt",
    connected=False,
    safing=1,
    open_safing=(OpenSafing(what="stop", command_id=STOP.command_id, since=AT),),
    connection=ConnectionState(
        connected=False, since=AT, fault=ConnectionFault.REFUSED, reason="the port refuses <b>", retry_s=5
    ),
)
ENGINEERS_ONLY = ["/api/v1/refused", "/api/v1/dead-letters", "/api/v1/audit", "/messages", "/audit"]


@pytest_asyncio.fixture
async def unconfirmed(plant: Plant) -> None:
    """Equipment that is not connected and has not confirmed a stop."""
    store = plant.store
    await instance_leases.register(store, (SCOPE,), "edge")
    await instance_leases.acquire(store, "edge", process_token())
    report = EquipmentReport(at=AT, equipment=(WRENCH,))
    await store.commit(equipment_memory.save_report(store.keys, "edge", report))
    await store.commit(equipment_memory.save_safing(store.keys, STOP))


@pytest_asyncio.fixture
async def letter_id(plant: Plant) -> str:
    """The letter of a job that failed."""
    await plant.order(Cause.STORE_AND_START, order("J2"))
    await plant.ask(Cause.ABORT, "J2")
    letter = Letter(LetterKind.START, SCOPE, "J2", "its start met a <b>defect", AT)
    await plant.store.commit(dead_letters.add(plant.store.keys, letter, 60_000))
    (found,) = await dead_letters.load_all(plant.store)
    return found


async def _statuses(services: WebServices, action: str) -> list[tuple[str, str]]:
    """Return who called an action, and with which result, as the trail in the store has it."""
    await services.audit.trail.write_waiting()
    store = services.store
    records = [json.loads(sealed.text) async for sealed in audit.read_all(store)]
    return [(record["user"], record["status"]) for record in records if record["action"] == action]


@pytest.mark.usefixtures("unconfirmed")
async def test_equipment_page_states_why_equipment_is_not_connected(browser: Browser) -> None:
    page = (await (await browser.logged_in("eve")).get("/equipment")).text
    assert "the port refuses &lt;b&gt;" in page
    assert STOP.command_id in page
    assert "/release" not in page
    assert "/api/v1/equipment/wrench/release" in (await (await browser.logged_in("alice")).get("/equipment")).text


@pytest.mark.usefixtures("unconfirmed")
async def test_operator_releases_a_stop_with_a_reason(browser: Browser, services: WebServices, store: Store) -> None:
    path = "/api/v1/equipment/wrench/release"
    assert (await (await browser.logged_in("eve")).post(path, {"reason": "x"})).status == 403
    alice = await browser.logged_in("alice")
    assert (await alice.post(path, {"reason": " "})).json["kind"] == "invalid_payload"
    assert (await alice.post("/api/v1/equipment/none/release", {"reason": "x"})).json["kind"] == "unknown_equipment"
    released = await alice.post(path, {"reason": "air cut off"}, idempotency_key="1")
    assert [stop["JobOrderID"] for stop in released.json["released"]] == ["J1"]
    (stop,) = await equipment_memory.load_all_safing(store)
    assert (stop.released_by, stop.release_reason) == ("alice", "air cut off")
    assert (await alice.post(path, {"reason": "air cut off"}, idempotency_key="1")).json == released.json
    assert (await alice.post(path, {"reason": "again"})).json["kind"] == "nothing_open"
    assert ("alice", "Good") in await _statuses(services, "equipment release")


async def test_page_after_a_change_is_made_again(browser: Browser, letter_id: str) -> None:
    """Open pages share what was read; a change by the page itself ends that."""
    max_ = await browser.logged_in("max")
    assert letter_id in (await max_.get("/messages", x_live="1")).text
    assert (await max_.post("/api/v1/dead-letters/drop", {"id": letter_id})).status == 200
    assert letter_id not in (await max_.get("/messages", x_live="1")).text


async def test_dead_letter_is_retried_at_the_page(
    browser: Browser, services: WebServices, plant: Plant, tool: FakeEquipment, letter_id: str
) -> None:
    tool.replies = obliging
    max_ = await browser.logged_in("max")
    assert "its start met a &lt;b&gt;defect" in (await max_.get("/messages")).text
    assert (await max_.post("/api/v1/dead-letters/retry", {"id": letter_id})).json["letters"] == []
    await plant.until_state("J2", JobState.ENDED)
    assert (await max_.post("/api/v1/dead-letters/retry", {"id": letter_id})).status == 404
    assert ("max", "Good") in await _statuses(services, "dead-letters retry")


async def test_dead_letter_has_one_form_and_is_dropped(browser: Browser, edge: Edge, letter_id: str) -> None:
    max_ = await browser.logged_in("max")
    on_page = (await max_.get("/api/v1/dead-letters")).json["letters"]
    assert json.loads((await edge("dead-letters", "list", "--json")).output) == on_page
    assert (await max_.post("/api/v1/dead-letters/drop", {"id": letter_id})).json["letters"] == []


async def test_refused_message_is_shown_as_the_command_does(browser: Browser, edge: Edge, store: Store) -> None:
    message = RefusedMessage("app/x", "t", "1", "invalid_payload", "no <i>JSON", b'{"password": "geheim"')
    await store.commit(record_refusal(store.keys, message))
    max_ = await browser.logged_in("max")
    on_page = (await max_.get("/api/v1/refused")).json
    assert json.loads((await edge("refused", "--json")).output) == on_page["messages"]
    assert on_page["refused"] == 1
    page = (await max_.get("/messages")).text
    assert "no &lt;i&gt;JSON" in page
    assert "geheim" not in page


async def test_audit_trail_is_filtered_and_verified(browser: Browser, services: WebServices, edge: Edge) -> None:
    max_ = await browser.logged_in("max")
    await browser.logged_in("alice")
    await services.audit.trail.write_waiting()
    records = (await max_.get("/api/v1/audit?user=alice")).json["records"]
    assert [record["action"] for record in records] == ["login"]
    assert json.loads((await edge("audit", "list", "--user", "alice", "--json")).output) == records
    chain = (await max_.get("/api/v1/audit/verify")).json
    assert chain["faults"] == []
    assert json.loads((await edge("audit", "verify", "--json")).output) == chain
    assert "No record is missing" in (await max_.get("/audit?verify=1")).text
    for last in ("0", "x", "1001", "9" * 5000):
        assert (await max_.get(f"/api/v1/audit?last={last}")).json["kind"] == "invalid_query"


@pytest.mark.parametrize("path", ENGINEERS_ONLY)
async def test_administration_requires_the_engineer_role(browser: Browser, path: str) -> None:
    assert (await (await browser.logged_in("alice")).get(path)).status == 403
    assert (await (await browser.logged_in("max")).get(path)).status == 200


async def test_gateway_page_links_what_the_role_may_open(browser: Browser) -> None:
    seen = {name: (await (await browser.logged_in(name)).get("/gateway")).text for name in ("eve", "max")}
    assert 'href="/equipment"' in seen["eve"]
    assert 'href="/audit"' not in seen["eve"]
    assert all(f'href="{path}"' in seen["max"] for path in ("/equipment", "/messages", "/audit", "/doctor", "/api"))
