"""Logins, problems and records of the API."""

import time

import pyotp
import pytest

from edge.access.audit_trail import AuditTrail
from edge.access.login import FREE_LOGINS
from edge.features.page.services import WebServices
from edge.model.audit import AuditRecord
from edge.model.user import Role
from tests.features.page.serving import SECRET, Browser
from tests.passwords import PASSWORD


async def test_login_sets_a_cookie_that_scripts_cannot_read(browser: Browser) -> None:
    reply = await browser.post("/api/v1/session", {"name": "eve", "password": PASSWORD})
    assert reply.json == {"user": "eve", "role": "observer"}
    assert reply.headers["set-cookie"].endswith("; HttpOnly; Path=/; SameSite=strict")


async def test_login_replaces_a_planted_session(browser: Browser) -> None:
    planted = await browser.logged_in("eve")
    victim = await planted.logged_in("alice")
    assert victim.cookie != planted.cookie
    assert (await planted.get("/api/v1/me")).status == 401


async def test_second_factor_is_needed_and_its_code_works_once(browser: Browser) -> None:
    code = pyotp.TOTP(SECRET).at(int(time.time()))
    login = {"name": "tom", "password": PASSWORD}
    assert (await browser.post("/api/v1/session", login)).status == 401
    assert (await browser.post("/api/v1/session", login | {"code": code})).status == 200
    assert (await browser.post("/api/v1/session", login | {"code": code})).status == 401


async def test_wrong_second_factor_codes_are_throttled(browser: Browser) -> None:
    login = {"name": "tom", "password": PASSWORD}
    for guess in range(FREE_LOGINS + 3):
        assert (await browser.post("/api/v1/session", login | {"code": f"{guess:06}"})).status == 401
    right = login | {"code": pyotp.TOTP(SECRET).at(int(time.time()))}
    reply = await browser.post("/api/v1/session", right)
    assert (reply.status, reply.json["kind"]) == (401, "login_refused")


async def test_logout_ends_the_session(browser: Browser) -> None:
    eve = await browser.logged_in("eve")
    reply = await eve.send("DELETE", "/api/v1/session", {"origin": eve.origin})
    assert reply.status == 204
    assert "Max-Age=0" in reply.headers["set-cookie"]
    assert (await eve.get("/api/v1/me")).status == 401


@pytest.mark.parametrize("body", ["[]", "{", '{"name": 1}', '{"name": "a"}', "[" * 10_000, "\x00"])
async def test_malformed_body_is_refused_with_advice(browser: Browser, body: str) -> None:
    headers = {"origin": browser.origin, "content-type": "application/json"}
    reply = await browser.send("POST", "/api/v1/session", headers, body.encode())
    assert reply.status == 422
    assert "openapi.json" in reply.json["advice"]


async def test_body_of_another_content_type_is_refused(browser: Browser) -> None:
    alice = await browser.logged_in("alice")
    for content_type in ("text/plain", "application/x-www-form-urlencoded", ""):
        reply = await alice.post("/api/v1/jobs/J1/pause", {}, content_type=content_type)
        assert reply.status == 415


def _queued(trail: AuditTrail) -> list[AuditRecord]:
    return [queued_record.record for queued_record in trail._waiting]  # noqa: SLF001


async def test_login_records_of_one_user_do_not_displace_other_records(services: WebServices) -> None:
    trail = services.audit._trail  # noqa: SLF001 - what waits for the store
    for _ in range(500):
        services.audit.logged_in("eve", Role.OBSERVER, "::1", "curl", "password")
    services.audit.logged_in("alice", Role.OPERATOR, "::1", "curl", "password")
    assert [audit_record.user for audit_record in _queued(trail)] == ["eve"] * 60 + ["alice"]


async def test_refusals_of_one_user_hide_none_of_another(browser: Browser, services: WebServices) -> None:
    trail = services.audit._trail  # noqa: SLF001 - what waits for the store
    for _ in range(30):
        services.audit.refused("nobody", "::1", "curl", "login", "unknown")
    eve = await browser.logged_in("eve")
    await eve.post("/api/v1/jobs/J1/pause", {})
    kinds = [
        (audit_record.user, audit_record.action)
        for audit_record in _queued(trail)
        if audit_record.kind == "web.refused"
    ]
    assert kinds.count(("nobody", "login")) == 20
    assert kinds[-1] == ("eve", "POST /jobs/{job}/pause")


async def test_calls_logins_and_refusals_are_recorded(browser: Browser, services: WebServices) -> None:
    trail = services.audit._trail  # noqa: SLF001 - what waits for the store
    eve, alice = await browser.logged_in("eve"), await browser.logged_in("alice")
    await eve.post("/api/v1/jobs/J1/pause", {})
    await alice.post("/api/v1/jobs/J1/pause", {"comment": "lunch"})
    await alice.post("/api/v1/jobs/J1/pause", {})
    records = [
        (audit_record.kind, audit_record.user, audit_record.action, audit_record.comment, audit_record.status)
        for audit_record in _queued(trail)
    ]
    assert records[2:4] == [
        ("web.refused", "eve", "POST /jobs/{job}/pause", "", "role"),
        ("web.call", "alice", "Pause", "lunch", "Good"),
    ]
    assert records[4][4] != "Good"
