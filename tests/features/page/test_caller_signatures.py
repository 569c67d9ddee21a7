"""Logins at a panel by PIN and badge over HTTP: elsewhere refused, lockouts stated, and the audit trail has the way."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from edge.access.login import Users
from edge.access.users import write_user
from edge.features.page.panels import Panels
from tests.access.test_login_at_panels import ANNA, BADGE, PIN
from tests.features.page.serving import NO_PANELS, services_of, serving
from tests.features.page.test_api import _queued
from tests.station.plant import Plant

PANELS = Panels((ip_network("127.0.0.1"),))
FORM = {"content_type": "application/x-www-form-urlencoded"}


@pytest.fixture
def people(users: Users, tmp_path: Path) -> Users:
    write_user(tmp_path / "users", ANNA)
    return users


async def test_pin_and_badge_log_in_at_a_panel_only(plant: Plant, people: Users) -> None:
    for given, way in (({"name": "anna", "pin": PIN}, "PIN"), ({"badge": BADGE}, "badge")):
        services = services_of(plant, people, panels=PANELS)
        async with serving(services) as browser:
            reply = await browser.post("/api/v1/session/panel", given)
            assert (reply.status, reply.json) == (200, {"user": "anna", "role": "operator"})
            record = _queued(services.audit.trail)[-1]
            assert (record.kind, record.user, record.comment) == ("web.login", "anna", way)
            other = await browser.post("/api/v1/session/panel", given, origin="http://evil.example")
            assert other.json["kind"] == "other_site"
            proxied = await browser.post("/api/v1/session/panel", given, via="1.1 proxy")
            assert (proxied.status, proxied.json["kind"]) == (403, "not_at_panel")
        async with serving(services_of(plant, people, panels=NO_PANELS)) as browser:
            reply = await browser.post("/api/v1/session/panel", given)
            assert (reply.status, reply.json["kind"]) == (403, "not_at_panel")
            assert "anna" not in (await browser.get("/login")).text


async def test_lockout_of_a_pin_states_its_time(plant: Plant, people: Users) -> None:
    services = services_of(plant, people, panels=PANELS)
    async with serving(services) as browser:
        for _ in range(4):
            reply = await browser.post("/api/v1/session/panel", {"name": "anna", "pin": "0000"})
            assert (reply.status, reply.json["reason"]) == (401, "name or PIN is wrong.")
        reply = await browser.post("/api/v1/session/panel", {"name": "anna", "pin": "0000"})
        assert (reply.status, reply.json["kind"]) == (429, "login_locked")
        assert "locked for 1 s" in reply.json["reason"]
        body = f"name=anna&pin={PIN}".encode()
        page = await browser.send("POST", "/login", FORM | {"origin": browser.origin}, body)
        assert page.status == 429
        assert "locked for 1 s" in page.text
        assert _queued(services.audit.trail)[-1].action == "login by PIN"


async def test_form_of_a_panel_has_the_names_with_a_pin(plant: Plant, people: Users) -> None:
    async with serving(services_of(plant, people, panels=PANELS)) as browser:
        page = (await browser.get("/login")).text
        assert ('value="anna"' in page, 'value="alice"' in page, 'name="password"' in page) == (True, False, False)
        assert 'name="password"' in (await browser.get("/login?password")).text
        body = f"name=anna&pin={PIN}".encode()
        reply = await browser.send("POST", "/login", FORM | {"origin": browser.origin}, body)
        assert (reply.status, reply.headers["location"]) == (303, "/")
