"""`edge doctor` examines the page: it answers, its certificate is valid, and an engineer can log in."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from edge.access.login import Users
from edge.access.password_hash import hash_password
from edge.access.users import User, write_user
from edge.config import Settings, UsersSettings
from edge.features.admin.host_check import examine_metrics
from edge.features.page.checks import checks, examine_page, examine_people
from edge.features.page.settings import WebSettings
from edge.model.finding import Level
from edge.model.user import Role
from edge.uaserver.certificates import load_or_make
from tests.app.opcua_answering import answering, only
from tests.features.page.serving import Browser, services_of, serving
from tests.free_ports import free_port
from tests.passwords import CHEAP_HASH
from tests.station.plant import Plant


def _settings(file: Path, *roles: Role, totp: tuple[str, ...] = ()) -> Settings:
    for number, role in enumerate(roles):
        write_user(file, User(f"user{number}", role, CHEAP_HASH))
    return Settings(users=UsersSettings(file=str(file), totp=totp))  # type: ignore[arg-type]


async def test_page_that_answers_is_ok(browser: Browser) -> None:
    finding = await only(examine_page(WebSettings(listen=f"127.0.0.1:{browser.port}")))
    assert (finding.level, finding.found) == (Level.OK, f"answers at 127.0.0.1:{browser.port}")


async def test_page_that_is_not_served_is_a_warning() -> None:
    finding = await only(examine_page(WebSettings(listen=f"127.0.0.1:{free_port()}")))
    assert finding.level is Level.WARNING
    assert "no gateway serves there" in finding.found


@pytest.mark.parametrize("words", [b"HTTP/1.1 200 OK\r\n\r\n{}", b"SSH-2.0\r\n", b""])
async def test_other_program_at_the_address_fails(words: bytes) -> None:
    async with answering(words) as endpoint:
        address = endpoint.removeprefix("opc.tcp://")
        for finding in (
            await only(examine_page(WebSettings(listen=address))),
            await only(examine_metrics(address)),
        ):
            assert (finding.level, finding.found) == (Level.FAILING, f"another program listens at {address}")


async def test_certificate_of_the_page_is_judged_by_its_end(plant: Plant, users: Users, tmp_path: Path) -> None:
    await asyncio.to_thread(load_or_make, tmp_path / "pki", "urn:x", ["localhost"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pki" / "own.pem")
    async with serving(services_of(plant, users, is_tls=True), tls=context) as client:
        settings = WebSettings(listen=f"tls://127.0.0.1:{client.port}")
        now = datetime.now(UTC)
        levels = {
            days: [finding.level async for finding in examine_page(settings, now + timedelta(days=days))]
            for days in (0, 365 * 5 - 10, 365 * 20)
        }
    assert levels == {0: [Level.OK], 365 * 5 - 10: [Level.WARNING, Level.OK], 365 * 20: [Level.FAILING, Level.OK]}


async def test_users_without_an_engineer_are_a_warning(tmp_path: Path) -> None:
    finding = await only(examine_people(_settings(tmp_path / "users")))
    assert (finding.level, "is empty" in finding.found) == (Level.WARNING, True)
    finding = await only(examine_people(_settings(tmp_path / "users", Role.OPERATOR)))
    assert (finding.level, finding.found) == (Level.WARNING, "no engineer can log in")
    finding = await only(examine_people(_settings(tmp_path / "users", Role.OPERATOR, Role.ENGINEER)))
    assert (finding.level, finding.found) == (Level.OK, "people who can log in: 2, engineers among them: 1")
    settings = _settings(tmp_path / "users", Role.OPERATOR, Role.ENGINEER, totp=("engineer",))
    assert (await only(examine_people(settings))).found == "no engineer can log in"


@pytest.mark.parametrize("password", ["password", "anna-engineer"])
async def test_password_of_an_engineer_that_can_be_guessed_fails(tmp_path: Path, password: str) -> None:
    write_user(tmp_path / "users", User("anna-engineer", Role.ENGINEER, hash_password(password)))
    finding = await only(examine_people(_settings(tmp_path / "users")))
    assert (finding.level, finding.found) == (Level.FAILING, "the password of anna-engineer can be guessed")


def test_page_that_is_off_is_not_examined(tmp_path: Path) -> None:
    assert list(checks(_settings(tmp_path / "users"))) == []
