"""Examines the station page for `edge doctor`: it answers, its certificate is valid, and people can log in."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from edge.access.password_hash import is_password
from edge.access.users import User, read_users
from edge.app.http_probe import no_answer, other_program, probe
from edge.config import Settings
from edge.features.page.settings import WebSettings
from edge.foundation.text import Text
from edge.model.finding import Examination, HealthFinding, failing, ok, warning
from edge.model.user import Role

SUBJECT: Final = "station page"
USERS: Final = "users of the page"
_SOON: Final = timedelta(days=30)
_PATH: Final = "/api/v1/me"
_GUESSES: Final = ("password", "12345678", "microdcs-edge", "engineer")
_MOST_GUESSED: Final = 3
"""Each guess takes a tenth of a second, four on a small board."""


async def examine_page(settings: WebSettings, now: datetime | None = None) -> AsyncIterator[HealthFinding]:
    """Examine whether the page answers at its address, and how long its certificate is valid."""
    host, port = settings.address
    try:
        answer = await probe(host, port, _PATH, is_tls=settings.is_tls)
    except (OSError, TimeoutError) as error:
        yield no_answer(SUBJECT, settings.listen, port, error)
        return
    if not _is_page(answer.status, answer.body):
        yield other_program(SUBJECT, settings.listen, port)
        return
    if answer.certificate and (finding := _certificate(answer.certificate, now or datetime.now(UTC))):
        yield finding
    yield ok(SUBJECT, Text.of("answers at {address}", address=settings.listen))


def _is_page(status: int, body: bytes) -> bool:
    """Return whether this is the answer of a page: who calls, or that a login is needed."""
    with contextlib.suppress(msgspec.DecodeError):
        data = msgspec.json.decode(body, type=dict[str, object])
        return (status, data.get("kind")) == (401, "login_required") or (status == 200 and "role" in data)  # noqa: PLR2004
    return False


def _certificate(der: bytes, now: datetime) -> HealthFinding | None:
    from cryptography import x509  # noqa: PLC0415 - only for a page with TLS

    ends = x509.load_der_x509_certificate(der).not_valid_after_utc
    if ends > now + _SOON:
        return None
    advice = "Renew it: edge opcua renew, or replace [web] cert_file; then restart the gateway."
    found = Text.of("its certificate is valid until {day}", day=f"{ends:%Y-%m-%d}")
    return failing(SUBJECT, found, advice) if ends <= now else warning(SUBJECT, found, advice)


async def examine_people(settings: Settings) -> AsyncIterator[HealthFinding]:
    """Examine whether people can log in, an engineer among them, and whether passwords can be guessed."""
    yield await asyncio.to_thread(_people, settings)


def _people(settings: Settings) -> HealthFinding:
    users = tuple(read_users(Path(settings.users_file)).values())
    if not users:
        return warning(
            USERS,
            Text.of("no user can log in: {file} is empty", file=settings.users_file),
            "Add one: sudo edge users add NAME --role engineer",
        )
    without = [user.name for user in users if not user.totp and user.role.name.lower() in settings.users.totp]
    engineers = [user for user in users if user.role is Role.ENGINEER and user.name not in without]
    if not engineers:
        return warning(USERS, "no engineer can log in", "Add one: sudo edge users add NAME --role engineer")
    if guessed := _guessed(engineers):
        return failing(
            USERS,
            Text.of("the password of {names} can be guessed", names=", ".join(guessed)),
            "Change it: sudo edge users passwd NAME",
        )
    if without:
        found = Text.of("without the second factor that the role needs: {names}", names=", ".join(without))
        return warning(USERS, found, "Set it: sudo edge users totp NAME")
    return ok(
        USERS,
        Text.of(
            "people who can log in: {count}, engineers among them: {engineers}",
            count=len(users),
            engineers=len(engineers),
        ),
    )


def _guessed(engineers: Sequence[User]) -> list[str]:
    return [
        user.name
        for user in engineers[:_MOST_GUESSED]
        if any(is_password(guess, user.password_hash) for guess in (user.name, *_GUESSES))
    ]


def checks(settings: Settings) -> Iterator[Examination]:
    """Yield the examinations of the page, where it is on."""
    if settings.is_on("web"):
        yield SUBJECT, examine_page(settings.section(WebSettings))
        yield USERS, examine_people(settings)
