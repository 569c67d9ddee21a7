"""Engineers operate the gateway over the API and on its page; other roles may only read."""

import pytest
from msgspec.structs import replace

from edge.access.locks import plan_acquire
from edge.features.page.services import WebServices
from edge.model.lock import LockClaim, LockKind
from edge.store import mode
from tests.features.page.serving import Browser, serving
from tests.station.plant import Plant
from tests.store.test_store_state import THIRD, line, replica_node

pytestmark = pytest.mark.slow

ENGINEERS_ONLY = ["/api/v1/sessions", "/api/v1/users", "/api/v1/certificates", "/api/v1/doctor", "/api/v1/log"]


async def test_engineer_switches_maintenance_on_and_off(browser: Browser, plant: Plant) -> None:
    alice, max_ = await browser.logged_in("alice"), await browser.logged_in("max")
    assert (await alice.post("/api/v1/maintenance/on", {})).json["kind"] == "forbidden"
    given = {"message": "tool change", "minutes": 30, "now": True}
    assert (await max_.post("/api/v1/maintenance/on", given)).status == 200
    maintenance = (await mode.load(plant.store, "edge")).gateway
    assert maintenance is not None
    assert (maintenance.message, maintenance.by, maintenance.kind.value) == ("tool change", "max", "now")
    assert (await max_.post("/api/v1/maintenance/off", {})).status == 200
    assert (await mode.load(plant.store, "edge")).gateway is None


async def test_operation_is_scheduled_and_cancelled(browser: Browser) -> None:
    engineer = await browser.logged_in("max")
    (made,) = (await engineer.post("/api/v1/operations", {"type": "backup"})).json["operations"]
    assert (made["state"], made["by"]) == ("scheduled", "max")
    assert (await engineer.post("/api/v1/operations", {"type": "rm"})).json["kind"] == "invalid_payload"
    (ended,) = (await engineer.post(f"/api/v1/operations/{made['id']}/cancel", {})).json["operations"]
    assert ended["state"] == "cancelled"
    assert (await engineer.post("/api/v1/operations/none/cancel", {})).status == 404


async def test_lock_of_a_live_owner_is_kept_unless_forced(browser: Browser, plant: Plant) -> None:
    claim = LockClaim(owner="somebody", reason="<b>", since=1)
    await plant.store.commit((await plan_acquire(plant.store, LockKind.JOB, ("J9",), claim)).commit)
    engineer = await browser.logged_in("max")
    assert (await engineer.get("/api/v1/locks")).json["locks"][0]["owner"] == "somebody"
    given = {"kind": "job", "id": "J9"}
    assert (await engineer.post("/api/v1/locks/delete", given)).json["kind"] == "locked"
    assert (await engineer.post("/api/v1/locks/delete", given | {"force": True})).json["locks"] == []
    assert (await engineer.post("/api/v1/locks/delete", given)).json["kind"] == "unknown_lock"


@pytest.mark.parametrize("path", [*ENGINEERS_ONLY, "/doctor", "/log"])
async def test_gateway_internals_require_the_engineer_role(browser: Browser, path: str) -> None:
    assert (await (await browser.logged_in("alice")).get(path)).status == 403
    reply = await (await browser.logged_in("max")).get(path)
    assert reply.status == 200
    assert path.startswith("/api/") or "<b>" not in reply.text


async def test_gateway_page_shows_engineers_more(browser: Browser) -> None:
    seen = {name: (await (await browser.logged_in(name)).get("/gateway")).text for name in ("eve", "max")}
    assert "CN=&lt;b&gt;" in seen["max"]
    assert "CN=" not in seen["eve"]
    assert "/api/v1/maintenance/on" not in seen["eve"]


async def test_wrong_certificate_level_and_session_are_refused(browser: Browser) -> None:
    engineer = await browser.logged_in("max")
    for thumbprint, status in (("A" * 40, 200), ("../../x", 422)):
        assert (await engineer.post("/api/v1/certificates/trust", {"thumbprint": thumbprint})).status == status
    assert (await engineer.get("/api/v1/log?level=x")).json["kind"] == "invalid_query"
    assert (await engineer.get("/api/v1/log?level=error")).json["lines"] == []
    assert (await engineer.post("/api/v1/sessions/end", {"id": "none"})).json["kind"] == "unknown_session"


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        (
            "en",
            ("Servers of the store", "confirmed by a majority", "3 of 3 answer", "10.0.0.3:6379 is away"),
        ),
        ("de", ("Server des Speichers", "von einer Mehrheit", "3 von 3 antworten", "Replikat 10.0.0.3:6379 fehlt")),
    ],
)
async def test_gateway_page_shows_the_servers_of_the_store(
    services: WebServices, language: str, texts: tuple[str, ...]
) -> None:
    state = line({THIRD: replica_node(THIRD, is_linked=False)})
    async with serving(replace(services, store_state=lambda: state)) as browser:
        page = (await (await browser.logged_in("eve")).get("/gateway", accept_language=language)).text
    assert [text for text in texts if text not in page] == []
