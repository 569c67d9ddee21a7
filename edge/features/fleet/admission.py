"""Decides whether a component executes a signed command: a pure function of command, policy, keys and instant."""

from collections.abc import Collection, Mapping
from enum import StrEnum

from msgspec import Struct

from edge.features.fleet.commands import fault_of
from edge.features.fleet.messages import FleetCommand, PublicKey
from edge.features.fleet.settings import is_command
from edge.features.fleet.signature import SignatureRefusal, SignedCommand, read_audience, verify

LONGEST_S = 7 * 24 * 3600
"""The longest lifetime of a command: so long its id is remembered."""
CLOCK_S = 60
"""How far the clocks of sender and component may differ."""
_ID_LENGTH = range(16, 65)


class FleetPolicy(Struct, frozen=True):
    """What a component is and allows: `allow` has commands, or first words of commands."""

    component: str
    labels: Mapping[str, str]
    allow: tuple[str, ...]


class Refusal(StrEnum):
    """Why an authentic command is not executed."""

    REVOKED_KEY = "key_revoked"
    MALFORMED = "malformed"
    EXPIRED = "expired"
    NOT_YET = "clock"
    TOO_LONG = "lifetime"
    POLICY = "not_allowed"
    ARGUMENTS = "arguments"


class Admitted(Struct, frozen=True):
    """A command to execute once, signed by `key`."""

    command: FleetCommand
    key: PublicKey


class RefusedCommand(Struct, frozen=True):
    """An authentic command that is not executed: the sender gets the reason."""

    command: FleetCommand
    key: PublicKey
    refusal: Refusal
    reason: str


class NotAuthentic(Struct, frozen=True):
    """A text that no known key has signed: it is logged and not answered."""

    reason: str
    kid: str = ""


class NotForUs(Struct, frozen=True):
    """A command for other components."""


Admission = Admitted | RefusedCommand | NotAuthentic | NotForUs


def admit(text: str, policy: FleetPolicy, keys: Mapping[str, PublicKey], now_s: int) -> Admission:
    """Return what a component does with a text."""
    audience = read_audience(text)
    if audience and not is_for(audience, policy.component, policy.labels):
        return NotForUs()
    match verify(text, keys):
        case SignatureRefusal(fault, kid, command):
            if command is None or not _is_id(command.jti):
                return NotAuthentic(fault.value, kid)
            return RefusedCommand(command, keys[kid], Refusal.REVOKED_KEY, f"{fault.value}: {kid}")
        case SignedCommand(admitted, key):
            if refused := _refusal(admitted, policy, now_s):
                return RefusedCommand(admitted, key, *refused)
            return Admitted(admitted, key)


def is_for(audience: Collection[str], component: str, labels: Mapping[str, str]) -> bool:
    """Return whether an audience names a component, one of its labels, or all components."""
    return not {"*", component, *(f"{name}={value}" for name, value in labels.items())}.isdisjoint(audience)


def _is_id(text: str) -> bool:
    return len(text) in _ID_LENGTH and text.isalnum() and text.isascii()


def _refusal(command: FleetCommand, policy: FleetPolicy, now_s: int) -> tuple[Refusal, str] | None:
    if not _is_id(command.jti):
        return Refusal.MALFORMED, "its id is not 16 to 64 letters and digits"
    if not command.aud:
        return Refusal.MALFORMED, "it names no component: `aud` is empty. For all components it is `*`"
    if len(set(command.aud)) < len(command.aud):
        return Refusal.MALFORMED, "`aud` names a component twice"
    if not 0 < command.exp - command.iat <= LONGEST_S:
        return Refusal.TOO_LONG, f"its lifetime is {command.exp - command.iat} s, at most {LONGEST_S} s are allowed"
    if command.iat > now_s + CLOCK_S:
        ahead = command.iat - now_s
        return Refusal.NOT_YET, f"it was signed {ahead} s in the future: check the clocks of sender and component"
    if command.exp <= now_s:
        return Refusal.EXPIRED, f"it expired {now_s - command.exp} s ago by the clock of the component"
    if not is_allowed(command.cmd, policy.allow):
        return Refusal.POLICY, f"[fleet] allow of the component does not have {command.cmd[:80]!r}"
    if fault := fault_of(command.cmd, command.args):
        return Refusal.ARGUMENTS, fault
    return None


def is_allowed(command: str, allow: tuple[str, ...]) -> bool:
    """Return whether a policy allows a command."""
    return any(is_command(command, text) for text in allow)
