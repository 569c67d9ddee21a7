"""An engineer administers users at the page and over the HTTP API, in the file that logins read."""
# ruff: noqa: F811 - the arguments are the fixtures of these names

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.access.login import Users
from edge.access.users import read_users
from edge.config import UsersSettings
from edge.features.admin.administration import Administration
from edge.features.page.services import WebServices
from edge.model.user import Role
from tests.features.page.chromium import chromium
from tests.features.page.conftest import clock, plant, tool, users  # noqa: F401 - fixtures
from tests.features.page.serving import SETTINGS, Browser, services_of, serving
from tests.passwords import PASSWORD
from tests.station.plant import Plant

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
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
    for path, body in (("add", NEW), ("role", {"name": "alice", "role": "engineer"}), ("remove", {"name": "max"})):
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
