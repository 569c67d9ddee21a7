"""Checks logins: password or token, second factor, and the wait after failures."""

import asyncio
import base64
import hmac
import os
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import structlog
from msgspec import Struct
from msgspec.structs import replace

from edge.access.login_throttle import CODES, LoginMemory, LoginThrottle, ProcessMemory, code_throttle, source_of
from edge.access.users import ITERATIONS, MEMORY_KIB, NAME, User, read_users
from edge.foundation.errors import Defect, Unavailable
from edge.model.role import Role

logger = structlog.get_logger(__name__)

PASSWORD_BYTES = 1024
"""The maximum length of a password at login, in bytes: the cost of hashing grows with the length."""

_Refusal = TypeVar("_Refusal", bound=str)

_PHC_HEAD = f"$argon2id$v=19$m={MEMORY_KIB},t={ITERATIONS},p=1"


class Credentials(Struct, frozen=True):
    """What a client sends to log in.

    `secret` is the password, for a user with second factor followed by the code, or a token. `is_confirmed`: the
    session was opened with the same secret, so that its code need not be new.
    """

    name: str
    secret: str
    address: str
    is_confirmed: bool = False


class LoginRefusal(StrEnum):
    """The reason for a refused login: for the audit record, never sent to the client."""

    WRONG = "name or password"
    WRONG_CODE = "the code of the second factor is missing or wrong"
    CODE_TOO_SOON = "too many wrong codes before, from all addresses: the right code has to wait, too"
    USED_CODE = "the code of the second factor was used before"
    UNCHECKED_CODE = "the store is unavailable: a code cannot be checked"
    NO_USER = "the certificate names no user of the gateway"
    NO_SECOND_FACTOR = "the role requires a second factor, and the user has none: edge users totp NAME"
    TOO_SOON = "too many failures before: the right password has to wait, too"


class Users:
    """The users of the gateway. One password at a time is hashed, in a thread: attackers use one core at most.

    `totp_roles` are the roles whose users need a second factor.
    """

    def __init__(
        self,
        file: Path,
        clock: Callable[[], float] = time.monotonic,
        wall_clock_s: Callable[[], float] = time.time,
        memory: LoginMemory | None = None,
        totp_roles: Collection[Role] = (),
    ) -> None:
        self._file = file
        self._users: Mapping[str, User] = {}
        self._state: tuple[int, int, int] | None = None
        self._throttle = LoginThrottle(clock)
        self._codes = code_throttle(clock)
        self._wall_clock_s = wall_clock_s
        self._memory = memory or ProcessMemory()
        self._totp_roles = frozenset(totp_roles)
        self._hashing = asyncio.Lock()
        # The password of an unknown user is checked against this hash: it takes the same time and always fails.
        self._unknown = User("", Role.OBSERVER, f"{_PHC_HEAD}${_phc(os.urandom(16))}${_phc(os.urandom(32))}")

    async def log_in(self, given: Credentials) -> Role | LoginRefusal:
        """Return the role of a user, or the reason for the refusal."""
        if len(given.secret.encode(errors="surrogatepass")) > PASSWORD_BYTES or not re.fullmatch(NAME, given.name):
            return LoginRefusal.WRONG  # no user has such a name or password
        given = replace(given, address=source_of(given.address))
        return await self._throttled(given.name, given.address, lambda: self._check(given))

    async def log_in_certified(self, name: str, address: str, fault: str) -> Role | str:
        """Return the role of a user with a certificate, or the reason for the refusal.

        `fault` is the fault of the certificate, empty for a trusted one. Failures count as those of passwords.
        """
        if not re.fullmatch(NAME, name):
            return fault or LoginRefusal.NO_USER

        async def check() -> Role | str:
            user = self._current().get(name)
            if fault or user is None:
                return fault or LoginRefusal.NO_USER
            return LoginRefusal.NO_SECOND_FACTOR if user.role in self._totp_roles else user.role

        return await self._throttled(name, source_of(address), check)

    async def _throttled(
        self, name: str, address: str, check: Callable[[], Awaitable[Role | _Refusal]]
    ) -> Role | _Refusal | LoginRefusal:
        """Check a login unless it has to wait, and count a refusal."""
        async with self._hashing:  # includes the throttle: many connections get no more attempts than one
            await self._memory.load_failures(self._throttle, name, address)
            if self._throttle.is_blocked(name, address):
                return LoginRefusal.TOO_SOON
            found = await check()
            if isinstance(found, str):
                self._throttle.failed(name, address)
                await self._memory.save_failures(self._throttle, name, address)
            elif (address, name) not in self._throttle.unknown_keys(name, address):
                self._throttle.succeeded(name, address)
                await self._memory.clear_failures(name, address)
            return found

    def role_of(self, name: str) -> Role | None:
        """Return the present role of a user; None for a user who was removed."""
        user = self._current().get(name)
        return user.role if user else None

    async def _check(self, given: Credentials) -> Role | LoginRefusal:
        user = self._current().get(given.name, self._unknown)
        if user.tokens and self._has_token(user, given.secret):
            return user.role
        password, code = _split(given.secret) if user.totp else (given.secret, "")
        if not await asyncio.to_thread(_is_right, user, password) or user is self._unknown:
            return LoginRefusal.WRONG
        if user.totp:
            refusal = None if given.is_confirmed else await self._check_code(user, code)
            return refusal or user.role
        return LoginRefusal.NO_SECOND_FACTOR if user.role in self._totp_roles else user.role

    def _has_token(self, user: User, secret: str) -> bool:
        from edge.access.totp import digest  # noqa: PLC0415 - pyotp is imported only where a user has tokens or codes

        today = datetime.fromtimestamp(self._wall_clock_s(), UTC).strftime("%Y%m%d")
        found = digest(secret)
        return any(hmac.compare_digest(found, token.digest) and today <= token.until for token in user.tokens)

    async def _check_code(self, user: User, code: str) -> LoginRefusal | None:
        from edge.access.totp import digest, is_one_of, matching_step  # noqa: PLC0415 - as above

        try:
            if code.isdecimal():
                return await self._check_step(user.name, matching_step(user.totp, code, self._wall_clock_s()))
            if not code or not is_one_of(code, user.recovery):
                return LoginRefusal.WRONG_CODE
            is_new = await self._memory.use_recovery_code(user.name, digest(code))
        except (Unavailable, Defect):
            return LoginRefusal.UNCHECKED_CODE
        return None if is_new else LoginRefusal.USED_CODE

    async def _check_step(self, name: str, step: int | None) -> LoginRefusal | None:
        """Check the step of a code of six digits, None for a wrong code; guesses wait, wherever they come from."""
        await self._memory.load_failures(self._codes, name, CODES)
        if self._codes.is_blocked(name, CODES):
            return LoginRefusal.CODE_TOO_SOON
        if step is None:
            self._codes.failed(name, CODES)
            await self._memory.save_failures(self._codes, name, CODES)
            return LoginRefusal.WRONG_CODE
        if not await self._memory.use_step(name, step):
            return LoginRefusal.USED_CODE
        if not self._codes.unknown_keys(name, CODES):
            self._codes.succeeded(name, CODES)
            await self._memory.clear_failures(name, CODES)
        return None

    def _current(self) -> Mapping[str, User]:
        try:
            status = self._file.stat()
            state = status.st_ino, status.st_mtime_ns, status.st_size
            if state != self._state:
                self._users = read_users(self._file)
                self._state = state
        except FileNotFoundError:
            self._users, self._state = {}, None
        except OSError as error:
            logger.warning("users unreadable", file=str(self._file), reason=str(error))
            self._users, self._state = {}, None
        return self._users


def _split(secret: str) -> tuple[str, str]:
    from edge.access.totp import split  # noqa: PLC0415 - as above

    parts = split(secret)
    return parts.password, parts.totp or parts.recovery


def _phc(content: bytes) -> str:
    return base64.b64encode(content).decode().rstrip("=")


def _is_right(user: User, password: str) -> bool:
    # 6 MB that a gateway without passwords, such as one with a kiosk only, does not need.
    from cryptography.exceptions import InvalidKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id  # noqa: PLC0415

    try:
        Argon2id.verify_phc_encoded(password.encode(errors="surrogatepass"), user.password_hash)
    except InvalidKey:
        return False
    return True
