"""The user file: names, roles, password hashes, second factors and tokens of OPC UA, command line and page.

    alice:operator:$argon2id$v=19$m=32768,t=3,p=1$...
    bob:engineer:$argon2id$...:totp=JBSWY3DP...:recovery=0f1e...,a2b3...
    scada:operator:$argon2id$...:token=9c41.20270101.5e88...
    cem:operator:$argon2id$...:pin=$argon2id$...:badge=$argon2id$...

`edge users` writes it. A line that ends with the hash is a user without second factor, as in files before version 0.9.
"""

import contextlib
import grp
import hashlib
import hmac
import itertools
import os
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import pyotp
import structlog
from msgspec import Struct

from edge.foundation.files import write_atomically
from edge.model.user import PublicToken, PublicUser, Role

logger = structlog.get_logger(__name__)

NAME = r"[^\s:#\x00-\x1f\ud800-\udfff][^:\x00-\x1f\x85\u2028\u2029\ud800-\udfff]{0,63}"
"""A name must not contain an end of line of Unicode, which would begin another user.

Nor surrogates: `_KEEP_BYTES` decodes bytes that are not UTF-8 to them.
"""
PASSWORD_LENGTH = range(8, 257)
"""The allowed lengths of new passwords, in characters."""
PIN_LENGTH = range(4, 9)
"""The allowed lengths of PINs, in digits."""
BADGE_LENGTH = range(6, 129)
"""The allowed lengths of badge codes, in characters."""

# 32 MiB and some 60 ms for each attempt: more than OWASP requires, and small enough for a gateway with 1 GB.
MEMORY_KIB = 32 * 1024
ITERATIONS = 3

_KEEP_BYTES = "surrogateescape"  # a line in another encoding defines no user and stays unchanged

_GROUP = "microdcs-edge"  # the group of the service on an installed gateway
_LINE = re.compile(rf"({NAME}):(\w+):([^\s:]+)((?::[a-z]+=[^\s:]*)*)")
_FACTORS = {
    "totp": re.compile(r"[A-Z2-7]{16,128}"),
    "recovery": re.compile(r"[0-9a-f]{64}(,[0-9a-f]{64})*"),
    "token": re.compile(r"\w+\.\d{8}\.[0-9a-f]{64}(,\w+\.\d{8}\.[0-9a-f]{64})*"),
    "pin": re.compile(r"\$argon2id\$[!-9;-~]+"),
    "badge": re.compile(r"\$argon2id\$[!-9;-~]+"),
}
_ROLES = {role.name.lower(): role for role in Role}


class Token(Struct, frozen=True):
    """A secret by which a program logs in as a user: its id, the last day it is valid (YYYYMMDD), its digest."""

    id: str
    until: str
    digest: str


class User(Struct, frozen=True):
    """One user: one line of the file. `recovery` are the digests of the recovery codes.

    `pin` and `badge` are the hashes of the PIN and of the badge code, "" without one.
    """

    name: str
    role: Role
    password_hash: str
    totp: str = ""
    recovery: tuple[str, ...] = ()
    tokens: tuple[Token, ...] = ()
    pin: str = ""
    badge: str = ""


def public_user(user: User, roles_with_factor: Collection[str]) -> PublicUser:
    """Return the public form of a user; `roles_with_factor` are those that need a second factor."""
    role = user.role.name.lower()
    return PublicUser(
        name=user.name,
        role=role,
        second_factor=bool(user.totp),
        second_factor_missing=not user.totp and role in roles_with_factor,
        recovery_codes=len(user.recovery),
        pin=bool(user.pin),
        badge=bool(user.badge),
        tokens=len(user.tokens),
        valid_tokens=tuple(
            PublicToken(id=token.id, until=f"{token.until[:4]}-{token.until[4:6]}-{token.until[6:]}")
            for token in user.tokens
        ),
    )


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
        if (user := _user(line.strip())) is None:
            logger.warning("user line invalid", file=str(file), line=number, expected="name:role:hash")
            continue
        users[user.name] = user
    return users


def write_user(file: Path, user: User) -> None:
    """Add a user or replace the one with this name; the other lines stay unchanged. Raises OSError."""
    _rewrite(file, user.name, [_line(user)])


def remove_user(file: Path, name: str) -> None:
    """Remove the user of this name; the other lines stay unchanged. Raises OSError."""
    _rewrite(file, name, [])


def _rewrite(file: Path, name: str, added: Iterable[str]) -> None:
    lines = file.read_text(encoding="utf-8", errors=_KEEP_BYTES).splitlines() if file.exists() else []
    kept = [line for line in lines if not line.strip().startswith(f"{name}:")]
    kept += added
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, "".join(f"{line}\n" for line in kept).encode(errors=_KEEP_BYTES), 0o640)
    with contextlib.suppress(KeyError, PermissionError):  # no such group, or no permission: the group stays
        os.chown(file, -1, grp.getgrnam(_GROUP).gr_gid)


def _user(line: str) -> User | None:
    match = _LINE.fullmatch(line)
    if match is None or match[2] not in _ROLES:
        return None
    factors = dict(word.split("=", 1) for word in match[4].split(":")[1:])
    if not all(name in _FACTORS and _FACTORS[name].fullmatch(text) for name, text in factors.items()):
        return None
    return User(
        match[1],
        _ROLES[match[2]],
        match[3],
        factors.get("totp", ""),
        tuple(_listed(factors, "recovery")),
        tuple(Token(*word.split(".")) for word in _listed(factors, "token")),
        factors.get("pin", ""),
        factors.get("badge", ""),
    )


def _listed(factors: Mapping[str, str], name: str) -> list[str]:
    return factors[name].split(",") if name in factors else []


def _line(user: User) -> str:
    return ":".join((user.name, user.role.name.lower(), user.password_hash, *_factors(user)))


def _factors(user: User) -> Iterator[str]:
    if user.totp:
        yield f"totp={user.totp}"
    if user.recovery:
        yield f"recovery={','.join(user.recovery)}"
    if user.tokens:
        yield f"token={','.join(f'{token.id}.{token.until}.{token.digest}' for token in user.tokens)}"
    if user.pin:
        yield f"pin={user.pin}"
    if user.badge:
        yield f"badge={user.badge}"


STEP_S = 30
DIGITS = 6
_STEPS_OFF = 1
"""The clock of a phone or of the gateway may be off by one step."""

RECOVERY_CODES = 10
_MARK_OF_TOKENS = "edge-"
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # without characters that look alike
_TOTP = re.compile(rf"(.*?)([0-9]{{{DIGITS}}})", re.DOTALL)
_RECOVERY = re.compile(rf"(.*?)([{_ALPHABET}]{{5}}-[{_ALPHABET}]{{5}})", re.DOTALL)


class SplitSecret(Struct, frozen=True):
    """What a client sent as its password: the password, and the code at its end; "" when it has none."""

    password: str
    totp: str = ""
    recovery: str = ""


def split(sent: str) -> SplitSecret:
    """Return password and code of a user with second factor: the code follows the password directly."""
    if match := _TOTP.fullmatch(sent):
        return SplitSecret(match[1], totp=match[2])
    if match := _RECOVERY.fullmatch(sent):
        return SplitSecret(match[1], recovery=match[2])
    return SplitSecret(sent)


def new_secret() -> str:
    """Return a new secret of 160 bits, in Base32."""
    return pyotp.random_base32()


def enrolment_uri(secret: str, user: str, issuer: str) -> str:
    """Return the URI from which an authenticator app takes the secret."""
    return pyotp.TOTP(secret, digits=DIGITS, interval=STEP_S).provisioning_uri(name=user, issuer_name=issuer)


def matching_step(secret: str, code: str, at_s: float) -> int | None:
    """Return the time step whose code this is; None when it is that of no step around this instant."""
    totp = pyotp.TOTP(secret, digits=DIGITS, interval=STEP_S)
    now = int(at_s // STEP_S)
    # Every step is compared, so that the time taken shows nothing.
    steps = [step for step in range(now - _STEPS_OFF, now + _STEPS_OFF + 1) if step >= 0]
    found = [step for step in steps if hmac.compare_digest(totp.generate_otp(step), code)]
    return found[-1] if found else None


def new_recovery_codes() -> list[str]:
    """Return recovery codes of 49 bits each; each of them is valid once in place of a code."""
    return ["-".join(_random_text(5) for _ in range(2)) for _ in range(RECOVERY_CODES)]


def new_token() -> str:
    """Return a new token of 256 bits."""
    return _MARK_OF_TOKENS + secrets.token_urlsafe(32)


def digest(code: str) -> str:
    """Return the digest by which a recovery code or a token is stored: both are random and need no slow hash."""
    return hashlib.sha256(code.encode(errors="surrogatepass")).hexdigest()


def is_one_of(code: str, digests: tuple[str, ...]) -> bool:
    """Return whether a code has one of these digests."""
    found = digest(code)
    return any(hmac.compare_digest(found, text) for text in digests)


def is_weak_pin(pin: str) -> bool:
    """Return whether a PIN is among the first that one tries: one digit again and again, or digits in a row."""
    steps = {int(second) - int(first) for first, second in itertools.pairwise(pin)}
    return len(steps) == 1 and steps <= {-1, 0, 1}


def _random_text(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
