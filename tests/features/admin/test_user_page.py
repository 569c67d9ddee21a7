"""An engineer administers users at the page and over the HTTP API, in the file that logins read."""
# ruff: noqa: F811 - the arguments are the fixtures of these names

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.access.login import StoredMemory, Users
from edge.access.password_hash import is_password
from edge.access.users import read_users
from edge.config import UsersSettings
from edge.features.admin.administration import Administration
from edge.features.page.services import WebServices
from edge.model.user import Role
from tests.features.page.chromium import chromium
from tests.features.page.conftest import clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import SETTINGS, Browser, services_of, serving
from tests.features.page.test_api import _queued
from tests.passwords import PASSWORD
from tests.station.plant import Plant

pytestmark = pytest.mark.slow

OF_PANELS = (("pin", {"name": "alice", "pin": "2580"}), ("badge", {"name": "alice", "badge": "04A1B2C3"}))
NEW = {"name": "nora", "role": "operator", "password": PASSWORD}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of the users, as the fixture `users` writes it."""
    return tmp_path / "users"


@pytest.fixture
def services(plant: Plant, users: Users, file: Path) -> WebServices:
    settings = replace(SETTINGS, users=UsersSettings(file=str(file)))
    return services_of(plant, users, ports={"admin": Administration(settings)})


@pytest_asyncio.fixture
async def browser(services: WebServices) -> AsyncIterator[Browser]:
    """A client that has not logged in."""
    async with serving(services) as client:
        yield client


async def test_user_is_added_changed_and_removed(browser: Browser, file: Path) -> None:
    max_ = await browser.logged_in("max")
    added = (await max_.post("/api/v1/users/add", NEW)).json
    assert [user["name"] for user in added["users"]] == ["eve", "alice", "max", "tom", "nora"]
    assert (await max_.post("/api/v1/users/add", NEW)).json["reason"] == "there is a user nora"
    assert (await (await browser.logged_in("nora")).get("/api/v1/me")).json["role"] == "operator"
    assert (await max_.post("/api/v1/users/role", {"name": "nora", "role": "engineer"})).status == 200
    assert read_users(file)["nora"].role is Role.ENGINEER
    before = read_users(file)["nora"].password_hash
    assert (await max_.post("/api/v1/users/password", {"name": "nora", "password": "another-one"})).status == 200
    assert read_users(file)["nora"].password_hash != before
    assert (await max_.post("/api/v1/users/second-factor-off", {"name": "tom"})).status == 200
    assert read_users(file)["tom"].totp == ""
    assert (await max_.post("/api/v1/users/remove", {"name": "nora"})).status == 200
    assert "nora" not in read_users(file)


async def test_pin_and_badge_are_set_and_removed_at_the_page(
    browser: Browser, file: Path, services: WebServices
) -> None:
    """Both needed a shell on the machine."""
    max_ = await browser.logged_in("max")
    for path, body in (("pin", {"pin": "2580"}), ("badge", {"badge": "04A1B2C3"})):
        assert (await max_.post(f"/api/v1/users/{path}", {"name": "alice"} | body)).status == 200
    alice = read_users(file)["alice"]
    assert (is_password("2580", alice.pin), is_password("04A1B2C3", alice.badge)) == (True, True)
    page = (await max_.get("/users")).text
    assert " · PIN · badge" in page
    assert ("/api/v1/users/pin-off" in page, "/api/v1/users/badge-off" in page) == (True, True)
    for path in ("pin-off", "badge-off"):
        assert (await max_.post(f"/api/v1/users/{path}", {"name": "alice"})).status == 200
    assert read_users(file)["alice"].pin + read_users(file)["alice"].badge == ""
    actions = [(record.action, record.subject, record.user) for record in _queued(services.audit.trail)]
    of_users = [action for action in actions if action[0].startswith("users ")]
    names = ("users pin", "users badge", "users pin --off", "users badge --off")
    assert of_users == [(name, "alice", "max") for name in names]


async def test_new_pin_ends_the_wait_after_wrong_ones(browser: Browser, plant: Plant, file: Path) -> None:
    max_ = await browser.logged_in("max")
    await max_.post("/api/v1/users/pin", {"name": "alice", "pin": "2580"})
    at_panel = Users(file, memory=StoredMemory(plant.store))
    await at_panel.log_in_with_pin("alice", "9999", "10.0.0.1")
    stored = plant.store.keys.login_attempt("*")
    before = await plant.store.execute("KEYS", stored)
    assert (await max_.post("/api/v1/users/pin", {"name": "alice", "pin": "2581"})).status == 200
    # What is left is the failure of the panel.
    assert len(await plant.store.execute("KEYS", stored)) == len(before) - 1


async def test_token_is_shown_once_and_revoked_at_the_page(browser: Browser, file: Path) -> None:
    max_ = await browser.logged_in("max")
    made = (await max_.post("/api/v1/users/token", {"name": "alice", "days": 7})).json
    assert made["token"].startswith("edge-")
    assert made["token"] not in (await max_.get("/users")).text + file.read_text()  # noqa: ASYNC240 - a small file
    basic = base64.b64encode(f"alice:{made['token']}".encode()).decode()
    assert (await browser.get("/api/v1/me", authorization=f"Basic {basic}")).json["user"] == "alice"
    assert made["id"] in (await max_.get("/users")).text
    body = {"name": "alice", "id": made["id"]}
    assert (await max_.post("/api/v1/users/token-off", body)).status == 200
    assert (await max_.post("/api/v1/users/token-off", body)).json["kind"] == "user"
    assert (await browser.get("/api/v1/me", authorization=f"Basic {basic}")).status == 401


async def test_badge_of_another_user_is_refused(browser: Browser, file: Path) -> None:
    max_ = await browser.logged_in("max")
    assert (await max_.post("/api/v1/users/badge", {"name": "alice", "badge": "04A1B2C3"})).status == 200
    refused = await max_.post("/api/v1/users/badge", {"name": "eve", "badge": "04A1B2C3"})
    assert (refused.json["kind"], refused.json["reason"]) == ("user", "this is the badge of alice")
    assert read_users(file)["eve"].badge == ""


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("pin", {"name": "alice", "pin": "1234"}, "user"),
        ("pin", {"name": "alice", "pin": "12"}, "user"),
        ("pin", {"name": "tom", "pin": "2580"}, "user"),  # has a second factor
        ("pin", {"name": "none", "pin": "2580"}, "user"),
        ("badge", {"name": "alice", "badge": "04A"}, "user"),
        ("badge", {"name": "tom", "badge": "04A1B2C3"}, "user"),
        ("token", {"name": "none"}, "user"),
        ("token", {"name": "alice", "days": 0}, "invalid_payload"),
        ("add", NEW | {"password": "short"}, "user"),
        ("add", NEW | {"name": "a:b"}, "user"),
        ("add", NEW | {"name": "a\nroot:engineer:x"}, "user"),
        ("add", NEW | {"role": "root"}, "invalid_payload"),
        ("role", {"name": "max", "role": "observer"}, "own_user"),
        ("second-factor-off", {"name": "max"}, "own_user"),
        ("remove", {"name": "max"}, "own_user"),
        ("remove", {"name": "none"}, "user"),
        ("password", {"name": "none", "password": PASSWORD}, "user"),
    ],
)
async def test_change_that_is_not_allowed_leaves_the_file(
    browser: Browser, file: Path, path: str, body: object, kind: str
) -> None:
    before = read_users(file)
    assert (await (await browser.logged_in("max")).post(f"/api/v1/users/{path}", body)).json["kind"] == kind
    assert read_users(file) == before


async def test_users_are_changed_by_engineers_only(browser: Browser, file: Path, services: WebServices) -> None:
    before = read_users(file)
    alice = await browser.logged_in("alice")
    assert (await alice.get("/users")).status == 403
    role, gone = {"name": "alice", "role": "engineer"}, {"name": "max"}
    for path, body in (("add", NEW), ("role", role), ("remove", gone), *OF_PANELS):
        assert (await alice.post(f"/api/v1/users/{path}", body)).json["kind"] == "forbidden"
    assert read_users(file) == before
    assert services.audit.trail.waiting


async def test_file_of_the_administrator_is_left_to_the_machine(plant: Plant, users: Users) -> None:
    """On an installed gateway the file is in /etc, which the service does not write."""
    settings = replace(SETTINGS, users=UsersSettings(file="/nonexistent/users"))
    async with serving(services_of(plant, users, ports={"admin": Administration(settings)})) as client:
        max_ = await client.logged_in("max")
        page = (await max_.get("/users")).text
        assert "/nonexistent/users" in page
        assert "data-form" not in page
        assert (await max_.post("/api/v1/users/add", NEW)).json["kind"] == "file"


@pytest.mark.long
async def test_user_is_added_by_the_keyboard_on_a_panel(browser: Browser, file: Path) -> None:
    async with chromium() as screen:
        await screen.show(800, 480, language="de")
        await screen.log_in(browser.origin, "max", PASSWORD)
        await screen.go(f"{browser.origin}/users")
        await screen.run("document.querySelector('details.order summary').focus()")
        await screen.press("Enter")
        await screen.run("document.querySelector('.order input[name=name]').focus()")
        await screen.type("nora")
        await screen.press("Tab")
        await screen.press("Tab")
        await screen.type(PASSWORD)
        await screen.press("Enter")
        await screen.until("document.body.textContent.includes('nora')")
        assert not await screen.run("document.documentElement.scrollWidth > innerWidth")
        assert not await screen.run("document.querySelector('details.order').open")
        assert read_users(file)["nora"].role is Role.OPERATOR
        assert screen.faults == []
