"""`edge fleet send` and `edge fleet results`: signs a command, sends it, and shows the results."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import click
import msgspec
from msgspec import structs
from msgspec.structs import replace

from edge.cli.terminal.operator import recorded
from edge.cli.terminal.output import counted, printable
from edge.cli.terminal.store_access import (
    CommandOutput,
    StoreAccess,
    json_option,
    run_on_store,
    settings_option,
    store_command,
)
from edge.cli.terminal.table import local_time, plain_table
from edge.features.fleet import store as fleet
from edge.features.fleet.allowed_commands import COMMANDS, fault_of, is_for
from edge.features.fleet.cli.keys import read_password
from edge.features.fleet.receipt import JOSE, FleetTopics
from edge.features.fleet.settings import FleetSettings
from edge.features.fleet.signature import FleetCommand, FleetResult, FleetState, sign
from edge.features.fleet.signing_keys import read_private
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.links.mqtt import Message, MqttSession, open_session
from edge.model.instant import rfc3339
from edge.store import components
from edge.store.client import Store

_LOOK_EVERY_S = 0.2
_ENDED = frozenset(FleetState) - {FleetState.EXECUTING}


async def exchange(
    at: StoreAccess, command: FleetCommand, text: str, names: Collection[str], wait_s: float
) -> dict[str, FleetResult]:
    """Send a command and return the results that came in time, by component. Raises Unavailable."""
    async with recorded(at, "fleet send", " ".join(command.aud), f"{command.cmd} {' '.join(command.args)}".strip()):
        if at.settings.section(FleetSettings).listen != "mqtt":
            await at.store.commit(fleet.put_command(at.store.keys, command.jti, text))
            return await _from_store(at, command.jti, names, wait_s)
        async with _results(at, command.jti) as (session, fleet_results):
            topic = FleetTopics(at.settings.section(FleetSettings).topic_prefix).command(command.jti)
            expiry = max(1, command.exp - int(time.time()))
            await session.publish(topic, text.encode(), retain=True, content_type=JOSE, expiry=expiry)
            await _wait(fleet_results, names, wait_s)
            return fleet_results


async def gateways_among(store: Store, audience: Collection[str]) -> frozenset[str]:
    """Return the names of the gateways on the store that an audience means: those that have to answer."""
    listed = [known_component.component for known_component in (await components.load_all(store)).values()]
    gateways = [component for component in listed if component.kind == "gateway"]
    return frozenset(gateway.id for gateway in gateways if is_for(audience, gateway.id, gateway.labels))


async def collect(at: StoreAccess, id: str, names: Collection[str], wait_s: float) -> dict[str, FleetResult]:
    """Return the results of a command that was sent before. Raises Unavailable."""
    if at.settings.section(FleetSettings).listen != "mqtt":
        return await _from_store(at, id, names, wait_s)
    async with _results(at, id) as (_, fleet_results):
        await _wait(fleet_results, names, wait_s)
        return fleet_results


async def _from_store(at: StoreAccess, id: str, names: Collection[str], wait_s: float) -> dict[str, FleetResult]:
    fleet_results: dict[str, FleetResult] = {}

    async def refresh() -> None:
        fleet_results.update(await fleet.load_results(at.store, id))

    await _wait(fleet_results, names, wait_s, refresh)
    return fleet_results


@asynccontextmanager
async def _results(at: StoreAccess, id: str) -> AsyncIterator[tuple[MqttSession, dict[str, FleetResult]]]:
    """Subscribe to the results of a command for the length of the block; they are also kept in our store."""
    fleet_results: dict[str, FleetResult] = {}

    async def keep(message: Message) -> None:
        try:
            result = msgspec.json.decode(message.payload, type=FleetResult)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return
        # The broker controls who writes a topic: a component speaks for itself only.
        if result.component == message.topic.rpartition("/")[2]:
            fleet_results[result.component] = result
            await at.store.commit(fleet.put_result(at.store.keys, id, result))

    async with open_session(at.settings.mqtt, f"edge-fleet-{secrets.token_hex(4)}", session_expiry=0) as session:
        await session.follow(FleetTopics(at.settings.section(FleetSettings).topic_prefix).results(id), keep)
        yield session, fleet_results


async def _wait(
    found: dict[str, FleetResult],
    names: Collection[str],
    wait_s: float,
    refresh: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Wait until all named components have answered; for groups the whole time."""
    until = time.monotonic() + wait_s
    while True:
        if refresh is not None:
            await refresh()
        ended = {name for name, fleet_result in found.items() if fleet_result.state in _ENDED}
        if (names and ended >= set(names)) or time.monotonic() > until:
            return
        await asyncio.sleep(_LOOK_EVERY_S)


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

    async def run(at: StoreAccess) -> CommandOutput:
        expected = await gateways_among(at.store, audience) | set(names)
        # A group may have components that another store lists: it is waited for to the end.
        awaited = () if labels or to_all else names
        answered = await exchange(at, claims, sign(claims, private, kid), awaited, wait)
        is_complete = answered.keys() >= expected and bool(answered)
        is_failed = any(result.state is not FleetState.SUCCESSFUL for result in answered.values())
        return replace(_output(claims.jti, answered, expected), is_failed=is_failed or not is_complete)

    run_on_store(settings_file, run).print(as_json=as_json)


def _id_of_command(_context: click.Context, _argument: click.Parameter, id: str) -> str:
    """Return the id of a command. Raises Refused for another text: it becomes a part of topics and keys."""
    if not (id.isascii() and id.isalnum()):
        raise Refused("fleet", Text.of("{id!r} is not an id of a command", id=id), "`edge fleet send` prints the id.")
    return id


@click.command(epilog="Example: edge fleet results 0b8f5c6d7e8f90a1b2c3d4e5f6a7b8c9")
@click.argument("id", metavar="ID", callback=_id_of_command)
@click.option(
    "--wait",
    type=click.IntRange(0, 3600),
    default=2,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for results.",
)
@store_command
async def results(at: StoreAccess, id: str, wait: int) -> CommandOutput:
    """Show the results of a command that was sent, also those that came later. They are kept for a week."""
    return _output(id, await collect(at, id, (), wait), frozenset())


def split_command(command: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the words of a command and its arguments: the longest known command counts."""
    for count in (2, 1):
        if (words := " ".join(command[:count])) in COMMANDS and len(command) >= count:
            return words, command[count:]
    raise click.UsageError(f"components do not execute {command[0]!r}; they execute: {', '.join(COMMANDS)}")


def _output(id: str, answers: dict[str, FleetResult], expected: frozenset[str]) -> CommandOutput:
    missing = sorted(expected - answers.keys())
    results = [structs.asdict(answer) | {"at": rfc3339(answer.at)} for answer in answers.values()]
    table = plain_table("component", "state", "at", "result")
    for name in sorted(answers):
        answer = answers[name]
        table.add_row(
            *map(printable, (name, answer.state.value, local_time(answer.at), answer.reason or answer.output[:300]))
        )
    for name in missing:
        table.add_row(printable(name), "no answer yet", "", "")
    data = {"id": id, "results": results, "missing": missing}
    if not answers and not missing:
        return CommandOutput(data, f"no results of command {printable(id)} yet")
    text = f"{counted(len(answers), 'result')} of command {id}; later ones: edge fleet results {id}"
    return CommandOutput(data, (table, text))
