"""Signs and verifies commands as compact JWS (RFC 7515) with Ed25519, and no other algorithm.

The header has exactly the members `alg`, `kid` and `typ` with the expected values: what a header may say elsewhere
(another algorithm, a key in the header, an unencoded payload) is refused before anything is computed.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Struct


class FleetCommand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The claims of a signed command, named as in RFC 7519; instants in seconds since the epoch.

    `aud` has names of components, labels as `line=3`, or `*`. `cmd` is a command of `edge`, `args` its arguments.
    """

    jti: str
    aud: tuple[str, ...]
    iat: int
    exp: int
    cmd: str
    args: tuple[str, ...] = ()


class PublicKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A public key as JSON Web Key (RFC 8037); `revoked` keys stay in the list, so that their commands are named."""

    kid: str
    x: str
    name: str = ""
    kty: str = "OKP"
    crv: str = "Ed25519"
    revoked: bool = False


class FleetState(StrEnum):
    """The state of a command at a component; it survives a restart of the component."""

    EXECUTING = "executing"
    SUCCESSFUL = "successful"
    FAILED = "failed"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"


class FleetResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a command at a component; `at` is in milliseconds since the epoch, by its clock."""

    state: FleetState
    at: int
    component: str
    command: str = ""
    reason: str = ""
    output: str = ""


ALGORITHM = "Ed25519"  # RFC 9864
TYPE = "mdcs-command+jwt"
MOST_CHARACTERS = 16_384

_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})")
_KEY_BYTES = 32

_PartT = TypeVar("_PartT", bound=Struct)


class _Header(Struct, frozen=True, forbid_unknown_fields=True):
    alg: str
    kid: str
    typ: str


class SignatureFault(StrEnum):
    """Why a text is not a command of a known key."""

    MALFORMED = "no signed command"
    ALGORITHM = "algorithm or type not allowed"
    UNKNOWN_KEY = "key unknown"
    REVOKED_KEY = "key revoked"
    SIGNATURE = "signature wrong"


class SignedCommand(Struct, frozen=True):
    """A command whose signature is valid, with its key."""

    command: FleetCommand
    key: PublicKey


class SignatureRefusal(Struct, frozen=True):
    """Why a command is not taken; with `command` where its signature is valid, but its key revoked."""

    fault: SignatureFault
    kid: str = ""
    command: FleetCommand | None = None


def sign(command: FleetCommand, key: Ed25519PrivateKey, kid: str) -> str:
    """Return a command as compact JWS."""
    header = _encode(msgspec.json.encode(_Header(ALGORITHM, kid, TYPE)))
    signed = f"{header}.{_encode(msgspec.json.encode(command))}"
    return f"{signed}.{_encode(key.sign(signed.encode()))}"


def read_audience(text: str) -> tuple[str, ...]:
    """Return the audience of a text before any verification; empty when it cannot be read.

    A component skips commands for others by it. It must not act on it.
    """
    command = _claims(text)
    return command.aud if command else ()


def read_expiry(text: str) -> int:
    """Return the expiry of a text before any verification; 0 when it cannot be read."""
    command = _claims(text)
    return command.exp if command else 0


def verify(text: str, keys: Mapping[str, PublicKey]) -> SignedCommand | SignatureRefusal:
    """Return the command of a text that a known key has signed, or why it is refused."""
    match = _COMPACT.fullmatch(text) if len(text) <= MOST_CHARACTERS else None
    header = _parse(match[1], _Header) if match else None
    if match is None or header is None:
        return SignatureRefusal(SignatureFault.MALFORMED)
    if (header.alg, header.typ) != (ALGORITHM, TYPE):
        return SignatureRefusal(SignatureFault.ALGORITHM)
    key = keys.get(header.kid)
    if key is None:
        return SignatureRefusal(SignatureFault.UNKNOWN_KEY, header.kid)
    if not _is_signed_by(key, f"{match[1]}.{match[2]}", match[3]):
        return SignatureRefusal(SignatureFault.SIGNATURE, header.kid)
    command = _claims(text)
    if command is None:
        return SignatureRefusal(SignatureFault.MALFORMED, header.kid)
    if key.revoked:
        return SignatureRefusal(SignatureFault.REVOKED_KEY, header.kid, command)
    return SignedCommand(command, key)


def public_key(key: Ed25519PublicKey, kid: str, name: str) -> PublicKey:
    """Return a public key in the form in which components hold it."""
    return PublicKey(kid=kid, x=_encode(key.public_bytes_raw()), name=name)


def is_usable(key: PublicKey) -> bool:
    """Return whether a key has the only allowed type and a readable value."""
    raw = _decode(key.x)
    return (key.kty, key.crv) == ("OKP", ALGORITHM) and raw is not None and len(raw) == _KEY_BYTES


def _is_signed_by(key: PublicKey, signed: str, signature: str) -> bool:
    raw, value = _decode(key.x), _decode(signature)
    if not is_usable(key) or raw is None or value is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(value, signed.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def _claims(text: str) -> FleetCommand | None:
    match = _COMPACT.fullmatch(text) if len(text) <= MOST_CHARACTERS else None
    return _parse(match[2], FleetCommand) if match else None


def _parse(part: str, kind: type[_PartT]) -> _PartT | None:
    """Parse a part of a command; None for one that is not valid or names a member twice (RFC 7515 4, RFC 7519 4)."""
    raw = _decode(part)
    if raw is None:
        return None
    try:
        parsed = msgspec.json.decode(raw, type=kind)
        json.loads(raw, object_pairs_hook=_reject_repeated_names)
    except (ValueError, RecursionError):
        return None
    return parsed


def _reject_repeated_names(members: Sequence[tuple[str, Any]]) -> None:
    """Raise ValueError for an object that names a member twice: two readers could take different ones."""
    if len({name for name, _ in members}) < len(members):
        raise ValueError("a member is repeated")


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decode(part: str) -> bytes | None:
    """Decode Base64url without padding; None for a text that is not exactly the encoding of its content."""
    try:
        raw = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if _encode(raw) == part else None
