"""Checks logins: password or token, second factor, and the wait after failures, which a restart does not forget."""

import asyncio
import base64
import hmac
import ipaddress
import os
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final, Protocol, TypeVar

import structlog
from msgspec import Struct
from msgspec.structs import replace

from edge.access.users import (
    BADGE_LENGTH,
    ITERATIONS,
    MEMORY_KIB,
    NAME,
    PIN_LENGTH,
    User,
    digest,
    is_one_of,
    matching_step,
    read_users,
    split,
)
from edge.foundation.errors import Defect, Unavailable
from edge.foundation.rate_limit import FailureKey, FailureThrottle
from edge.model.user import Role
from edge.store import logins
from edge.store.client import Store

logger = structlog.get_logger(__name__)

_HOST_BITS = 64
"""The last bits of an IPv6 address, which a host chooses itself (RFC 4291, 2.5.1)."""


FREE_LOGINS: Final = 3
FREE_OF_ADDRESS: Final = 20
CODES: Final = logins.CODES
"""Stands for all addresses where wrong codes are counted."""
_FREE_CODES: Final = 10
_FREE_PINS: Final = 5
_FORGET_CODES_S: Final = 86_400.0


def keys_of_login(name: str, address: str) -> tuple[FailureKey, FailureKey]:
    """Return the keys by which a login is counted: the user at the address, and the address.

    Failures from one address do not lock out the user at another address.
    """
    return (address, name), (address,)


def login_throttle(clock: Callable[[], float]) -> FailureThrottle:
    """Return the throttle of failed logins: per user at an address, and per address for all users."""
    return FailureThrottle(clock, lambda key: FREE_OF_ADDRESS if len(key) == 1 else FREE_LOGINS)


def code_throttle(clock: Callable[[], float]) -> FailureThrottle:
    """Return the throttle of wrong codes after the right password: per user, from all addresses together.

    A code has six digits: with 96 guesses a day it is not found in years.
    """
    return FailureThrottle(clock, lambda _: _FREE_CODES, _FORGET_CODES_S)


def pin_throttle(clock: Callable[[], float]) -> FailureThrottle:
    """Return the throttle of wrong PINs: per user, from all panels together, forgotten after a right one or a day.

    With 96 guesses a day a PIN of four digits is found in a hundred days, one of six in decades.
    """
    return FailureThrottle(clock, lambda _: _FREE_PINS, _FORGET_CODES_S)


def source_of(address: str) -> str:
    """Return the address by which failures are counted: one for all addresses that a host can choose itself.

    Those are the addresses of its loopback interface, and those of its network in IPv6.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address  # of the command line
    found = getattr(found, "ipv4_mapped", None) or found
    if found.is_loopback:
        return "loopback"
    return str(found if isinstance(found, IPv4Address) else ipaddress.ip_network((found, _HOST_BITS), strict=False))


class LoginMemory(Protocol):
    """Keeps what logins must remember beyond the life of a process."""

    async def load_failures(self, throttle: FailureThrottle, keys: Sequence[FailureKey]) -> None:
        """Load the stored failures of an attempt."""

    async def save_failures(self, throttle: FailureThrottle, keys: Sequence[FailureKey]) -> None:
        """Save the failures that the throttle knows."""

    async def clear_failures(self, key: FailureKey) -> None:
        """Remove the failures of a key."""

    async def use_step(self, name: str, step: int) -> bool:
        """Mark the time step of a code as used; return False when it or a later one was used. Raises Unavailable."""

    async def use_recovery_code(self, name: str, digest: str) -> bool:
        """Mark a recovery code as used; return False when it was used before. Raises Unavailable."""


class StoredMemory:
    """What logins remember, in the store: all gateways on it count failures together.

    Failures are counted in memory alone while the store is unavailable.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsaved: set[FailureKey] = set()
        """Keys whose last failure is in memory alone."""

    async def load_failures(self, throttle: FailureThrottle, keys: Sequence[FailureKey]) -> None:
        """Load the stored failures of an attempt, of whichever gateway; unsaved ones stay."""
        for key in keys:
            if key in self._unsaved and key in throttle:
                continue
            try:
                found = await logins.load_failures(self._store, key)
            except (Unavailable, Defect) as error:
                logger.warning("login failures not loaded", reason=error.message)
                return
            if found is None:
                throttle.forget(key)
            elif throttle.failures_of(key) != found[0]:
                throttle.restore(key, *found)

    async def save_failures(self, throttle: FailureThrottle, keys: Sequence[FailureKey]) -> None:
        """Save the failures that the throttle knows, after those that another gateway stored meanwhile."""
        for key in keys:
            try:
                await self._save(throttle, key)
                self._unsaved.discard(key)
            except (Unavailable, Defect) as error:
                if len(self._unsaved) < throttle.MOST:
                    self._unsaved.add(key)
                logger.warning("login failures not saved", reason=error.message)

    async def _save(self, throttle: FailureThrottle, key: FailureKey) -> None:
        while key in throttle:
            count, wait_s = throttle.failures_of(key), throttle.wait_s(key)
            stored = await logins.save_failures(self._store, key, count, wait_s, throttle.forget_s)
            if stored is None:
                return
            throttle.add_to(stored, key)

    async def clear_failures(self, key: FailureKey) -> None:
        """Remove the failures of a key."""
        try:
            await logins.clear_failures(self._store, key)
        except (Unavailable, Defect) as error:
            logger.warning("login failures not cleared", reason=error.message)

    async def use_step(self, name: str, step: int) -> bool:
        """Mark the time step of a code as used; return False when it or a later one was used. Raises Unavailable."""
        return await logins.use_step(self._store, name, step)

    async def use_recovery_code(self, name: str, digest: str) -> bool:
        """Mark a recovery code as used; return False when it was used before. Raises Unavailable."""
        return await logins.use_recovery_code(self._store, name, digest)


class ProcessMemory:
    """What logins remember for the life of this process: for servers without a store."""

    def __init__(self) -> None:
        self._steps: dict[str, int] = {}
        self._codes: set[tuple[str, str]] = set()

    async def load_failures(self, throttle: FailureThrottle, keys: Sequence[FailureKey]) -> None:
        """Return at once: the throttle knows all failures of this process."""

    async def save_failures(self, throttle: FailureThrottle, keys: Sequence[FailureKey]) -> None:
        """Return at once: the throttle knows all failures of this process."""

    async def clear_failures(self, key: FailureKey) -> None:
        """Return at once: the throttle knows all failures of this process."""

    async def use_step(self, name: str, step: int) -> bool:
        """Mark the time step of a code as used; return False when it or a later one was used."""
        if step <= self._steps.get(name, -1):
            return False
        self._steps[name] = step
        return True

    async def use_recovery_code(self, name: str, digest: str) -> bool:
        """Mark a recovery code as used; return False when it was used before."""
        is_new = (name, digest) not in self._codes
        self._codes.add((name, digest))
        return is_new


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


class PanelUser(Struct, frozen=True):
    """A user known by a PIN or a badge."""

    name: str
    role: Role


class LoginRefusal(StrEnum):
    """The reason for a refused login: for the audit record, never sent to the client."""

    WRONG = "name or password"
    WRONG_CODE = "the code of the second factor is missing or wrong"
    CODE_TOO_SOON = "too many wrong codes before, from all addresses: the right code has to wait, too"
    USED_CODE = "the code of the second factor was used before"
    UNCHECKED_CODE = "the store is unavailable: a code cannot be checked"
    NO_USER = "the certificate names no user of the gateway"
    NO_SECOND_FACTOR = "the role requires a second factor, and the user has none: edge users totp NAME"
    WRONG_PIN = "name or PIN"
    UNKNOWN_BADGE = "no user has this badge"
    CODE_NEEDED = "the user or the role has a second factor: password and code, not PIN or badge"
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
        self._throttle = login_throttle(clock)
        self._codes = code_throttle(clock)
        self._pins = pin_throttle(clock)
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
            keys = keys_of_login(name, address)
            await self._memory.load_failures(self._throttle, keys)
            if self._throttle.is_blocked(keys):
                return LoginRefusal.TOO_SOON
            found = await check()
            if isinstance(found, str):
                self._throttle.failed(keys)
                await self._memory.save_failures(self._throttle, keys)
            elif keys[0] in self._throttle:
                # Those of the address may belong to other users.
                self._throttle.forget(keys[0])
                await self._memory.clear_failures(keys[0])
            return found

    async def log_in_with_pin(self, name: str, pin: str, address: str) -> PanelUser | LoginRefusal:
        """Return the user with this name and PIN, or the reason for the refusal. Only for panels."""
        if not re.fullmatch(NAME, name) or len(pin) > PIN_LENGTH[-1]:
            return LoginRefusal.WRONG_PIN
        page, own = (f"{logins.PINS} {source_of(address)}",), (logins.PINS, name)

        async def check() -> PanelUser | LoginRefusal:
            await self._memory.load_failures(self._pins, (own,))
            if self._pins.is_blocked((own,)):
                return LoginRefusal.TOO_SOON
            user = self._current().get(name)
            secret = user.pin if user and user.pin else self._unknown.password_hash
            if not await asyncio.to_thread(_is_same, pin, secret) or user is None or not user.pin:
                self._pins.failed((own,))
                await self._memory.save_failures(self._pins, (own,))
                return LoginRefusal.WRONG_PIN
            if own in self._pins:
                self._pins.forget(own)
                await self._memory.clear_failures(own)
            return self._person(user)

        return await self._at_panel(page, check)

    async def log_in_with_badge(self, code: str, address: str) -> PanelUser | LoginRefusal:
        """Return the user with this badge, or the reason for the refusal. Only for panels."""
        if len(code) not in BADGE_LENGTH:
            return LoginRefusal.UNKNOWN_BADGE

        async def check() -> PanelUser | LoginRefusal:
            owner = await asyncio.to_thread(_owner, code, self._current().values())
            return self._person(owner) if owner else LoginRefusal.UNKNOWN_BADGE

        return await self._at_panel((f"badges {source_of(address)}",), check)

    async def has_badge(self, code: str) -> bool:
        """Return whether a code is the badge of a user, which is not a value for a job.

        It counts no failure: a person learns it only by an answer that counts for another code.
        """
        if len(code) not in BADGE_LENGTH:
            return False
        async with self._hashing:
            return await asyncio.to_thread(_owner, code, self._current().values()) is not None

    async def recognizes_badge(self, code: str, address: str) -> bool:
        """Return whether a code is the badge of a user, for a person who may ask again; False while the panel waits.

        The limit is that of logins by badge. The failures are counted apart: codes of work keep no badge from a login.
        """
        if len(code) not in BADGE_LENGTH:
            return False

        async def check() -> PanelUser | LoginRefusal:
            owner = await asyncio.to_thread(_owner, code, self._current().values())
            return PanelUser(owner.name, owner.role) if owner else LoginRefusal.UNKNOWN_BADGE

        return isinstance(await self._at_panel((f"codes {source_of(address)}",), check), PanelUser)

    async def _at_panel(
        self, page: FailureKey, check: Callable[[], Awaitable[PanelUser | LoginRefusal]]
    ) -> PanelUser | LoginRefusal:
        """Check a PIN or a badge unless the panel has to wait, and count a refusal for the panel."""
        async with self._hashing:
            await self._memory.load_failures(self._throttle, (page,))
            if self._throttle.is_blocked((page,)):
                return LoginRefusal.TOO_SOON
            found = await check()
            if found in {LoginRefusal.WRONG_PIN, LoginRefusal.UNKNOWN_BADGE}:
                self._throttle.failed((page,))
                await self._memory.save_failures(self._throttle, (page,))
            return found

    def panel_wait_s(self, name: str, address: str) -> float:
        """Return the seconds that PINs of a user, or for "" badges, still wait at a panel."""
        source = source_of(address)
        if not name:
            return self._throttle.wait_s((f"badges {source}",))
        return max(self._throttle.wait_s((f"{logins.PINS} {source}",)), self._pins.wait_s((logins.PINS, name)))

    def names_with_pin(self) -> tuple[str, ...]:
        """Return the names of the users who have a PIN, in their order."""
        return tuple(sorted(user.name for user in self._current().values() if user.pin))

    def _person(self, user: User) -> PanelUser | LoginRefusal:
        needs_code = bool(user.totp) or user.role in self._totp_roles
        return LoginRefusal.CODE_NEEDED if needs_code else PanelUser(user.name, user.role)

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
        today = datetime.fromtimestamp(self._wall_clock_s(), UTC).strftime("%Y%m%d")
        found = digest(secret)
        return any(hmac.compare_digest(found, token.digest) and today <= token.until for token in user.tokens)

    async def _check_code(self, user: User, code: str) -> LoginRefusal | None:
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
        key = (CODES, name)
        await self._memory.load_failures(self._codes, (key,))
        if self._codes.is_blocked((key,)):
            return LoginRefusal.CODE_TOO_SOON
        if step is None:
            self._codes.failed((key,))
            await self._memory.save_failures(self._codes, (key,))
            return LoginRefusal.WRONG_CODE
        if not await self._memory.use_step(name, step):
            return LoginRefusal.USED_CODE
        if key in self._codes:
            self._codes.forget(key)
            await self._memory.clear_failures(key)
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
    parts = split(secret)
    return parts.password, parts.totp or parts.recovery


def _phc(content: bytes) -> str:
    return base64.b64encode(content).decode().rstrip("=")


def _is_right(user: User, password: str) -> bool:
    return _is_same(password, user.password_hash)


def _is_same(secret: str, secret_hash: str) -> bool:
    # A gateway without passwords, such as one with a kiosk only, does not need it.
    from edge.access.password_hash import is_password  # noqa: PLC0415

    return is_password(secret, secret_hash)


def _owner(code: str, users: Iterable[User]) -> User | None:
    """Return the user with a badge: a hash for each salt, of which there is one as a rule, and a comparison of all."""
    from edge.access.password_hash import hash_like, head_of  # noqa: PLC0415 - as above

    with_badge = [user for user in users if user.badge]
    hashes = {head: hash_like(code, head) for head in {head_of(user.badge) for user in with_badge}}
    owners = [user for user in with_badge if hmac.compare_digest(hashes[head_of(user.badge)], user.badge)]
    return owners[0] if owners else None
