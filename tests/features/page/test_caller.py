"""The permissions of a request depend on its sender: a login, a token, or the kiosk of this host."""

import base64

import pytest

from edge.access.login import Users
from tests.features.page.serving import TOKEN, Browser, services_of, serving
from tests.passwords import PASSWORD
from tests.station.plant import Plant


def basic(name: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()


async def test_request_without_a_login_is_refused(browser: Browser) -> None:
    assert (await browser.get("/api/v1/jobs")).json["kind"] == "login_required"
    assert (await browser.get("/")).headers["location"] == "/login"


async def test_program_with_a_token_needs_no_origin(browser: Browser) -> None:
    headers = {"authorization": basic("alice", TOKEN), "origin": ""}
    assert (await browser.post("/api/v1/jobs/J1/pause", {}, **headers)).status == 200


@pytest.mark.parametrize(
    "header", ["Basic", "Basic !!!", "Bearer x", basic("alice", "edge-wrong"), basic("\ud7ff", "")]
)
async def test_wrong_token_is_refused(browser: Browser, header: str) -> None:
    reply = await browser.get("/api/v1/jobs", authorization=header)
    assert reply.status == 401
    assert reply.json["kind"] == "login_refused"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "", "sec_fetch_site": "cross-site"},
        {"origin": "", "sec_fetch_site": "same-site"},
        {"host": "evil.example"},
    ],
)
async def test_change_from_another_site_is_refused(browser: Browser, headers: dict[str, str]) -> None:
    alice = await browser.logged_in("alice")
    reply = await alice.post("/api/v1/jobs/J1/pause", {}, **headers)
    assert (reply.status, reply.json["kind"]) == (403, "other_site")


async def test_kiosk_may_read_but_not_change(plant: Plant, users: Users) -> None:
    async with serving(services_of(plant, users, is_kiosk=True)) as browser:
        assert (await browser.get("/api/v1/jobs")).status == 200
        reply = await browser.post("/api/v1/jobs/J1/pause", {})
        assert (reply.status, reply.json["kind"]) == (403, "forbidden")


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"x_forwarded_for": "192.0.2.7"}, {"via": "1.1 proxy"}])
async def test_kiosk_refuses_other_hosts_and_proxies(plant: Plant, users: Users, headers: dict[str, str]) -> None:
    async with serving(services_of(plant, users, is_kiosk=True)) as browser:
        assert (await browser.get("/api/v1/jobs", **headers)).status == 401


async def test_too_many_requests_of_a_login_are_refused(plant: Plant, users: Users) -> None:
    async with serving(services_of(plant, users, most_requests=3)) as browser:
        eve, alice = await browser.logged_in("eve"), await browser.logged_in("alice")
        assert [(await eve.get("/api/v1/me")).status for _ in range(4)] == [200, 200, 200, 429]
        assert (await alice.get("/api/v1/me")).status == 200


async def test_removed_user_is_logged_out(browser: Browser, users: Users) -> None:
    eve = await browser.logged_in("eve")
    assert (await eve.get("/api/v1/me")).json == {"user": "eve", "role": "observer"}
    users._file.write_text("")  # noqa: SLF001 - as `edge users remove` does
    assert (await eve.get("/api/v1/me")).status == 401
    assert PASSWORD
