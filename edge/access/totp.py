"""One-time passwords by time (RFC 6238) as the second factor, recovery codes, and tokens of programs."""

import hashlib
import hmac
import re
import secrets

import pyotp
from msgspec import Struct

STEP_S = 30
DIGITS = 6
_STEPS_OFF = 1
"""The clock of a phone or of the gateway may be off by one step."""

RECOVERY_CODES = 10
TOKEN_PREFIX = "edge-"  # noqa: S105 - how a token begins, no password
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
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def digest(code: str) -> str:
    """Return the digest by which a recovery code or a token is stored: both are random and need no slow hash."""
    return hashlib.sha256(code.encode(errors="surrogatepass")).hexdigest()


def is_one_of(code: str, digests: tuple[str, ...]) -> bool:
    """Return whether a code has one of these digests."""
    found = digest(code)
    return any(hmac.compare_digest(found, text) for text in digests)


def _random_text(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
