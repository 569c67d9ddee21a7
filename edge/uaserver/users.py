"""The users of the OPC UA server: a file of names, roles and password hashes, and a throttle for failed logins.

    alice:operator:$argon2id$v=19$m=32768,t=3,p=1$...

The file is read again when it has changed. `edge opcua password` writes it; to remove a user, delete the line.
"""

import asyncio
import base64
import contextlib
import grp
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import structlog
from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from edge.files import write_atomically
from edge.opcua.access import Role

logger = structlog.get_logger(__name__)

NAME = r"[^\s:#\x00-\x1f\ud800-\udfff][^:\x00-\x1f\ud800-\udfff]{0,63}"
"""A name must not contain surrogates: `_KEEP_BYTES` decodes bytes that are not UTF-8 to them."""
PASSWORD_LENGTH = range(8, 257)
"""The allowed lengths of new passwords, in characters."""
PASSWORD_BYTES = 1024
"""The maximum length of a password at login, in bytes: the cost of hashing grows with the length."""

# 32 MiB and some 60 ms for each attempt: more than OWASP requires, and small enough for a gateway with 1 GB.
_MEMORY_KIB = 32 * 1024
_ITERATIONS = 3

_PHC_HEAD = f"$argon2id$v=19$m={_MEMORY_KIB},t={_ITERATIONS},p=1"

_KEEP_BYTES = "surrogateescape"  # a line in another encoding defines no user and stays unchanged

_GROUP = "microdcs-edge"  # the group of the service on an installed gateway
_LINE = re.compile(rf"({NAME}):(\w+):(\S+)")
_ROLES = {role.name.lower(): role for role in Role}


@dataclass(frozen=True, slots=True)
class User:
    """One user: one line of the file."""

    name: str
    role: Role
    password_hash: str


def hash_password(password: str) -> str:
    """Hash a password with a new salt; return the PHC string."""
    argon = Argon2id(salt=os.urandom(16), length=32, iterations=_ITERATIONS, lanes=1, memory_cost=_MEMORY_KIB)
    return argon.derive_phc_encoded(password.encode())


def read_users(file: Path) -> dict[str, User]:
    """Read the users; a missing file has none; an invalid line is logged and skipped."""
    try:
        text = file.read_text(encoding="utf-8", errors=_KEEP_BYTES)
    except FileNotFoundError:
        return {}
    users = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or match[2] not in _ROLES:
            logger.warning("OPC UA user line invalid", file=str(file), line=number, expected="name:role:hash")
            continue
        users[match[1]] = User(match[1], _ROLES[match[2]], match[3])
    return users


def write_user(file: Path, user: User) -> None:
    """Add a user or replace the one with this name; the other lines stay unchanged. Raises OSError."""
    lines = file.read_text(encoding="utf-8", errors=_KEEP_BYTES).splitlines() if file.exists() else []
    kept = [line for line in lines if not line.startswith(f"{user.name}:")]
    kept.append(f"{user.name}:{user.role.name.lower()}:{user.password_hash}")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, ("\n".join(kept) + "\n").encode(errors=_KEEP_BYTES), 0o640)
    with contextlib.suppress(KeyError, PermissionError):  # no such group, or no permission: the group stays
        os.chown(file, -1, grp.getgrnam(_GROUP).gr_gid)


class LoginRefusal(StrEnum):
    """The reason for a refused login: for the audit record, never sent to the client."""

    WRONG = "name or password"
    TOO_SOON = "too many failures before: the right password has to wait, too"


class Users:
    """The users of the server. One password at a time is hashed, in a thread: attackers use one core at most."""

    def __init__(self, file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._users: Mapping[str, User] = {}
        self._state: tuple[int, int] | None = None
        self._throttle = LoginThrottle(clock)
        self._hashing = asyncio.Lock()
        # The password of an unknown user is checked against this hash: it takes the same time and always fails.
        self._nobody = User("", Role.OBSERVER, f"{_PHC_HEAD}${_phc(os.urandom(16))}${_phc(os.urandom(32))}")

    async def log_in(self, name: str, password: str, address: str) -> Role | LoginRefusal:
        """Return the role of a user, or the reason for the refusal."""
        if len(password.encode()) > PASSWORD_BYTES:
            return LoginRefusal.WRONG
        async with self._hashing:  # includes the throttle: many connections get no more attempts than one
            if self._throttle.is_blocked(name, address):
                return LoginRefusal.TOO_SOON
            user = self._current().get(name, self._nobody)
            is_right = await asyncio.to_thread(_is_right, user, password)
            if not is_right or user is self._nobody:
                self._throttle.failed(name, address)
                return LoginRefusal.WRONG
            self._throttle.succeeded(name, address)
            return user.role

    def _current(self) -> Mapping[str, User]:
        try:
            status = self._file.stat()
            state = status.st_mtime_ns, status.st_size
            if state != self._state:
                self._users = read_users(self._file)
                self._state = state
        except FileNotFoundError:
            self._users, self._state = {}, None
        except OSError as error:
            logger.warning("OPC UA users unreadable", file=str(self._file), reason=str(error))
            self._users, self._state = {}, None
        return self._users


class LoginThrottle:
    """The wait after failed logins: per user at an address, and per address for all users.

    After the free attempts the wait is one second; it doubles with each further failure. A user is counted per address:
    failures from one address do not lock out the user at another address.
    """

    FREE = 3
    FREE_FOR_ADDRESS = 20
    LONGEST_S = 900.0
    MOST = 1000

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures: dict[tuple[str, ...], tuple[int, float]] = {}

    def is_blocked(self, name: str, address: str) -> bool:
        """Return whether this attempt is refused unchecked."""
        now = self._clock()
        return any(self._failures.get(key, (0, 0.0))[1] > now for key, _ in self._keys(name, address))

    def failed(self, name: str, address: str) -> None:
        """Record a failure of this user and of this address."""
        now = self._clock()
        for key, free in self._keys(name, address):
            count, until = self._failures.pop(key, (0, now))
            count = 1 if until + self.LONGEST_S < now else count + 1  # an old failure has expired
            wait = min(2.0 ** min(count - free, 30), self.LONGEST_S) if count >= free else 0.0
            self._failures[key] = count, now + wait
        while len(self._failures) > self.MOST:
            del self._failures[next(iter(self._failures))]

    def succeeded(self, name: str, address: str) -> None:
        """Reset the failures of this user at this address; those of the address may belong to other users."""
        self._failures.pop((address, name), None)

    def _keys(self, name: str, address: str) -> Iterator[tuple[tuple[str, ...], int]]:
        yield (address, name), self.FREE
        yield (address,), self.FREE_FOR_ADDRESS


def _phc(content: bytes) -> str:
    return base64.b64encode(content).decode().rstrip("=")


def _is_right(user: User, password: str) -> bool:
    try:
        Argon2id.verify_phc_encoded(password.encode(), user.password_hash)
    except InvalidKey:
        return False
    return True
