"""`edge fleet send` and `edge fleet results`: signs a command, sends it, and shows the results."""

import asyncio
import secrets
import time
from pathlib import Path

import click
import msgspec

from edge.cli.terminal.output import print_json, print_text, printable
from edge.cli.terminal.store_access import json_option, open_access, settings_option
from edge.cli.terminal.table import local_time, open_console, plain_table
from edge.features.fleet.cli.exchange import collect, exchange, gateways_among
from edge.features.fleet.cli.keys import read_password
from edge.features.fleet.commands import COMMANDS, fault_of
from edge.features.fleet.keys import read_private
from edge.features.fleet.messages import FleetCommand, FleetResult, FleetState
from edge.features.fleet.signature import sign

_KEY = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Example: edge fleet send --to gw-07 --key anna.pem doctor",
)
@click.option("--to", "names", multiple=True, metavar="NAME", help="A component; may be repeated.")
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="All components with this label.")
@click.option("--all", "to_all", is_flag=True, help="All components.")
@click.option("--key", "key_file", type=_KEY, required=True, help="Private key of the administrator.")
@click.option("--password-stdin", is_flag=True, help="Read the password of the key from standard input.")
@click.option(
    "--valid",
    type=click.IntRange(10, 604_800),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="How long absent components may still get the command.",
)
@click.option(
    "--wait",
    type=click.IntRange(0, 3600),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for results.",
)
@settings_option
@json_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def send(
    names: tuple[str, ...],
    labels: tuple[str, ...],
    key_file: Path,
    valid: int,
    wait: int,
    settings_file: Path | None,
    command: tuple[str, ...],
    *,
    to_all: bool,
    password_stdin: bool,
    as_json: bool,
) -> None:
    """Send a signed command to components, and show their results.

    COMMAND is a command of `edge` that components execute, with its arguments: status, doctor, jobs list, restart, …
    Options of `fleet send` stand before it. A component checks the signature and its own policy, and executes the
    command once. The transport is `[fleet] listen` of these settings. Results that come later: `edge fleet results ID`.
    The exit status is 0 when every result is successful and every component has answered, else 1. For --label and --all
    these are the gateways of `edge fleet list`.
    """
    audience = tuple(dict.fromkeys((*names, *labels, *(("*",) if to_all else ()))))
    if not audience:
        raise click.UsageError("name components: --to, --label or --all")
    words, arguments = split_command(command)
    if fault := fault_of(words, arguments):
        raise click.UsageError(f"{fault}. Options of `fleet send` stand before COMMAND.")
    private, kid = read_private(key_file, read_password(from_stdin=password_stdin))
    now = int(time.time())
    claims = FleetCommand(jti=secrets.token_hex(16), aud=audience, iat=now, exp=now + valid, cmd=words, args=arguments)

    async def run() -> tuple[dict[str, FleetResult], frozenset[str]]:
        async with open_access(settings_file) as at:
            expected = await gateways_among(at.store, audience) | set(names)
            # A group may have components that another store lists: it is waited for to the end.
            awaited = () if labels or to_all else names
            return await exchange(at, claims, sign(claims, private, kid), awaited, wait), expected

    answered, expected = asyncio.run(run())
    _print(claims.jti, answered, expected, as_json=as_json)
    is_complete = answered.keys() >= expected and bool(answered)
    if not is_complete or any(result.state is not FleetState.SUCCESSFUL for result in answered.values()):
        raise SystemExit(1)


@click.command(epilog="Example: edge fleet results 0b8f5c6d7e8f90a1b2c3d4e5f6a7b8c9")
@click.argument("id", metavar="ID")
@click.option(
    "--wait",
    type=click.IntRange(0, 3600),
    default=2,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for results.",
)
@settings_option
@json_option
def results(id: str, wait: int, settings_file: Path | None, *, as_json: bool) -> None:
    """Show the results of a command that was sent, also those that came later. They are kept for a week."""

    async def run() -> dict[str, FleetResult]:
        async with open_access(settings_file) as at:
            return await collect(at, id, (), wait)

    _print(id, asyncio.run(run()), frozenset(), as_json=as_json)


def split_command(command: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the words of a command and its arguments: the longest known command counts."""
    for count in (2, 1):
        if (words := " ".join(command[:count])) in COMMANDS and len(command) >= count:
            return words, command[count:]
    raise click.UsageError(f"components do not execute {command[0]!r}; they execute: {', '.join(COMMANDS)}")


def _print(id: str, found: dict[str, FleetResult], expected: frozenset[str], *, as_json: bool) -> None:
    missing = sorted(expected - found.keys())
    if as_json:
        print_json({"id": id, "results": msgspec.to_builtins(list(found.values())), "missing": missing})
        return

    table = plain_table("component", "state", "at", "result")
    for name in sorted(found):
        answer = found[name]
        table.add_row(
            *map(printable, (name, answer.state.value, local_time(answer.at), answer.reason or answer.output[:300]))
        )
    for name in missing:
        table.add_row(printable(name), "no answer yet", "", "")
    open_console().print(table)
    print_text(f"{len(found)} results of command {id}; later ones: edge fleet results {id}")
