"""The commands that components execute: commands of `edge`, each with the arguments that it may have.

Arguments come from outside. Only the listed options pass, each bound to its value, and positional arguments follow
`--`: no value can become another option, such as the path of other settings.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct, field

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

READING = tuple(name for name, form in COMMANDS.items() if not form.changes)


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
