"""Which signed commands a component executes, case by case."""

import pytest
from msgspec.structs import replace

from edge.features.fleet.allowed_commands import (
    CLOCK_S,
    COMMANDS,
    LONGEST_S,
    Admitted,
    FleetPolicy,
    NotAuthentic,
    NotForUs,
    Refusal,
    RefusedCommand,
    admit,
    argv,
)
from edge.features.fleet.signature import FleetCommand, PublicKey, sign
from edge.features.fleet.signing_keys import new_key

PRIVATE, PUBLIC = new_key("anna")
NOW = 1_800_000_000
POLICY = FleetPolicy("gw-1", {"line": "3"}, ("status", "audit", "sessions end"))
COMMAND = FleetCommand(jti="0123456789abcdef", aud=("gw-1",), iat=NOW - 10, exp=NOW + 600, cmd="status")


def admitted(command: FleetCommand, key: PublicKey = PUBLIC) -> object:
    found = admit(sign(command, PRIVATE, PUBLIC.kid), POLICY, {key.kid: key}, NOW)
    return found.refusal if isinstance(found, RefusedCommand) else type(found)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, Admitted),
        ({"aud": ("gw-2", "gw-1")}, Admitted),
        ({"aud": ("*",)}, Admitted),
        ({"aud": ("line=3",)}, Admitted),
        ({"aud": ("line=4",)}, NotForUs),
        ({"aud": ("gw-11",)}, NotForUs),
        ({"aud": ("GW-1",)}, NotForUs),
        ({"aud": ()}, Refusal.MALFORMED),
        ({"aud": ("gw-1", "gw-1")}, Refusal.MALFORMED),
        ({"aud": ("gw-2", "gw-2")}, NotForUs),
        ({"exp": NOW}, Refusal.EXPIRED),
        ({"exp": NOW + 1}, Admitted),
        ({"iat": NOW + CLOCK_S}, Admitted),
        ({"iat": NOW + CLOCK_S + 1}, Refusal.NOT_YET),
        ({"iat": NOW - 100, "exp": NOW - 200}, Refusal.TOO_LONG),
        ({"iat": NOW, "exp": NOW + LONGEST_S}, Admitted),
        ({"iat": NOW, "exp": NOW + LONGEST_S + 1}, Refusal.TOO_LONG),
        ({"iat": -(10**18), "exp": 10**18}, Refusal.TOO_LONG),
        ({"cmd": "restart"}, Refusal.POLICY),
        ({"cmd": "audit verify"}, Admitted),
        ({"cmd": "audit"}, Refusal.ARGUMENTS),
        ({"cmd": "status; reboot"}, Refusal.POLICY),
        ({"cmd": "statusx"}, Refusal.POLICY),
        ({"args": ("--settings", "/etc/mine")}, Refusal.ARGUMENTS),
        ({"args": ("-x",)}, Refusal.ARGUMENTS),
        ({"jti": "short"}, Refusal.MALFORMED),
        ({"jti": "0123456789abcde:"}, Refusal.MALFORMED),
        ({"jti": "a" * 65}, Refusal.MALFORMED),
    ],
    ids=str,
)
def test_command_is_admitted_by_audience_time_policy_and_arguments(change: dict[str, object], expected: object) -> None:
    assert admitted(replace(COMMAND, **change)) is expected


def test_revoked_key_is_answered_and_unknown_one_is_not() -> None:
    assert admitted(COMMAND, replace(PUBLIC, revoked=True)) is Refusal.REVOKED_KEY
    _, other = new_key("ben")
    assert admitted(COMMAND, other) is NotAuthentic


def test_default_settings_allow_read_commands_only() -> None:
    from edge.features.fleet.settings import FleetSettings

    policy = FleetPolicy("gw-1", {}, FleetSettings().allow)
    for name in COMMANDS:
        needed = ("x",) * COMMANDS[name].positional[0]
        found = admit(
            sign(replace(COMMAND, cmd=name, args=needed), PRIVATE, PUBLIC.kid), policy, {PUBLIC.kid: PUBLIC}, NOW
        )
        assert isinstance(found, Admitted) == (not COMMANDS[name].changes), name


@pytest.mark.parametrize(
    ("command", "arguments", "expected"),
    [
        ("doctor", (), ["doctor", "--settings", "F", "--json"]),
        ("audit list", ("--last", "5"), ["audit", "list", "--settings", "F", "--json", "--last=5"]),
        (
            "audit list",
            ("--user", "--settings=/x"),
            ["audit", "list", "--settings", "F", "--json", "--user=--settings=/x"],
        ),
        (
            "locks delete",
            ("job", "--id", "J1", "--id=J2", "--force"),
            ["locks", "delete", "--settings", "F", "--json", "--id=J1", "--id=J2", "--force", "--", "job"],
        ),
        ("sessions end", ("s1",), ["sessions", "end", "--settings", "F", "--", "s1"]),
    ],
)
def test_option_value_is_not_read_as_an_option(command: str, arguments: tuple[str, ...], expected: list[str]) -> None:
    assert argv(command, arguments, ("--settings", "F")) == expected


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("audit list", ("--last",)),
        ("audit list", ("extra",)),
        ("locks list", ("--rpc", "tcp://192.0.2.1:5005")),
        ("audit list", ("--settings=/x",)),
        ("doctor", ("x\n",)),
        ("sessions end", ("x" * 501,)),
        ("sessions end", tuple(map(str, range(21)))),
        ("sessions end", ("--", "--settings=/x")),
    ],
)
def test_disallowed_command_arguments_are_refused(command: str, arguments: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"."):
        argv(command, arguments)


def test_revoked_key_with_an_invalid_id_is_not_answered() -> None:
    """The id is part of a topic and of a key: the holder of a stolen key must not choose its length."""
    found = admitted(replace(COMMAND, jti="a" * 4000), replace(PUBLIC, revoked=True))
    assert found is NotAuthentic
