"""The commands that components execute: commands of `edge`, each with the arguments that it may have.

Arguments come from outside. Only the listed options pass, each bound to its value, and positional arguments follow
`--`: no value can become another option, such as the path of other settings.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct, field

from edge.features.fleet.settings import is_command
from edge.features.fleet.signature import (
    FleetCommand,
    PublicKey,
    SignatureRefusal,
    SignedCommand,
    read_audience,
    verify,
)

_MOST_ARGUMENTS = 20
_MOST_CHARACTERS = 500


class CommandForm(Struct, frozen=True):
    """How a command may be called: `flags` have no value, `options` have one."""

    changes: bool = False
    flags: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()
    positional: range = field(default=range(1))
    """How many positional arguments it takes."""
    prints_json: bool = True


UPGRADE = "upgrade"
"""Upgrades the package; root executes it, and the gateway is restarted meanwhile."""
_ONE = range(1, 2)
_CHANGING = CommandForm(changes=True, prints_json=False)

COMMANDS: Mapping[str, CommandForm] = MappingProxyType(
    {
        "status": CommandForm(),
        "doctor": CommandForm(),
        "fleet list": CommandForm(),
        "jobs list": CommandForm(),
        "alarms list": CommandForm(),
        "sessions list": CommandForm(),
        "audit list": CommandForm(options=frozenset({"--last", "--user", "--subject", "--kind"})),
        "audit verify": CommandForm(),
        "locks list": CommandForm(positional=range(11)),
        "locks delete": CommandForm(
            changes=True, flags=frozenset({"--force"}), options=frozenset({"--id"}), positional=range(2)
        ),
        "maintenance show": CommandForm(),
        "maintenance on": CommandForm(
            changes=True,
            flags=frozenset({"--drain", "--now"}),
            options=frozenset({"--message", "--until", "--gateway"}),
        ),
        "maintenance off": CommandForm(changes=True, options=frozenset({"--gateway"})),
        "sessions end": CommandForm(
            changes=True, options=frozenset({"--user"}), positional=range(20), prints_json=False
        ),
        "station diff": CommandForm(),
        "station apply": CommandForm(changes=True, flags=frozenset({"--delete"})),
        "operations list": CommandForm(),
        "operations show": CommandForm(positional=_ONE),
        "operations schedule": CommandForm(
            changes=True,
            flags=frozenset({"--daily", "--with-key", "--delete"}),
            options=frozenset({"--at", "--gateway", "--equipment", "--seconds"}),
            positional=_ONE,
        ),
        "operations cancel": CommandForm(changes=True, positional=_ONE, prints_json=False),
        "opcua renew": _CHANGING,
        "record": CommandForm(changes=True, options=frozenset({"--seconds"}), positional=_ONE, prints_json=False),
        "log-level": CommandForm(changes=True, options=frozenset({"--minutes"}), positional=_ONE, prints_json=False),
        "support-bundle": _CHANGING,
        UPGRADE: CommandForm(changes=True, options=frozenset({"--version"}), prints_json=False),
        "reload": _CHANGING,
        "restart": _CHANGING,
    }
)
"""Command -> its form. The gateway itself executes `status`, `log-level`, `reload` and `restart`, root `upgrade`."""


def fault_of(command: str, arguments: tuple[str, ...]) -> str:
    """Return why a command cannot be called in this way; "" when it can."""
    form = COMMANDS.get(command)
    if form is None:
        return f"there is no command {command[:80]!r} for components"
    try:
        argv(command, arguments)
    except ValueError as error:
        return str(error)
    return ""


def argv(command: str, arguments: tuple[str, ...], common: Sequence[str] = ()) -> list[str]:
    """Return the arguments of `edge` for a command, with `common` options of this component.

    Raises ValueError for arguments that the command may not have.
    """
    form = COMMANDS[command]
    if len(arguments) > _MOST_ARGUMENTS or any(not _is_text(argument) for argument in arguments):
        raise ValueError("too many arguments, or one that is too long or no text")
    named, positional = _sorted(command, form, arguments)
    if len(positional) not in form.positional:
        least, most = form.positional[0], form.positional[-1]
        count = f"{most}" if least == most else f"at most {most}"
        raise ValueError(f"{command} takes {count} argument{'s'[: most != 1]} without a name")
    json = ["--json"] if form.prints_json else []
    return [*command.split(), *common, *json, *named, *(["--", *positional] if positional else [])]


def _sorted(command: str, form: CommandForm, arguments: tuple[str, ...]) -> tuple[list[str], list[str]]:
    named: list[str] = []
    positional: list[str] = []
    waiting = iter(arguments)
    for text in waiting:
        name, equals, value = text.partition("=")
        if not text.startswith("-"):
            positional.append(text)
        elif text in form.flags:
            named.append(text)
        elif name in form.options:
            given = value if equals else next(waiting, None)
            if given is None:
                raise ValueError(f"{name} needs a value")
            named.append(f"{name}={given}")
        else:
            raise ValueError(f"{command} does not take {name[:80]!r} from the fleet")
    return named, positional


def _is_text(argument: str) -> bool:
    return 0 < len(argument) <= _MOST_CHARACTERS and argument.isprintable()


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
