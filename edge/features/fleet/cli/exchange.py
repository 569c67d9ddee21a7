"""Sends a signed command over the broker or the store, and collects the results of the components."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager

import msgspec

from edge.cli.terminal.operator import recorded
from edge.cli.terminal.store_access import StoreAccess
from edge.features.fleet import store as fleet
from edge.features.fleet.admission import is_for
from edge.features.fleet.messages import FleetCommand, FleetResult, FleetState
from edge.features.fleet.settings import FleetSettings
from edge.features.fleet.topics import JOSE, FleetTopics
from edge.foundation.errors import Refused
from edge.links.mqtt import Message, MqttSession, open_session
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
        async with _results(at, command.jti) as (session, found):
            topic = FleetTopics(at.settings.section(FleetSettings).topic_prefix).command(command.jti)
            expiry = max(1, command.exp - int(time.time()))
            await session.publish(topic, text.encode(), retain=True, content_type=JOSE, expiry=expiry)
            await _wait(found, names, wait_s)
            return found


async def gateways_among(store: Store, audience: Collection[str]) -> frozenset[str]:
    """Return the names of the gateways on the store that an audience means: those that have to answer."""
    listed = [known.component for known in (await components.load_all(store)).values()]
    gateways = [component for component in listed if component.kind == "gateway"]
    return frozenset(gateway.id for gateway in gateways if is_for(audience, gateway.id, gateway.labels))


async def collect(at: StoreAccess, id: str, names: Collection[str], wait_s: float) -> dict[str, FleetResult]:
    """Return the results of a command that was sent before. Raises Unavailable."""
    if not (id.isascii() and id.isalnum()):
        raise Refused("fleet", f"{id!r} is not an id of a command", "`edge fleet send` prints the id.")
    if at.settings.section(FleetSettings).listen != "mqtt":
        return await _from_store(at, id, names, wait_s)
    async with _results(at, id) as (_, found):
        await _wait(found, names, wait_s)
        return found


async def _from_store(at: StoreAccess, id: str, names: Collection[str], wait_s: float) -> dict[str, FleetResult]:
    found: dict[str, FleetResult] = {}

    async def refresh() -> None:
        found.update(await fleet.load_results(at.store, id))

    await _wait(found, names, wait_s, refresh)
    return found


@asynccontextmanager
async def _results(at: StoreAccess, id: str) -> AsyncIterator[tuple[MqttSession, dict[str, FleetResult]]]:
    """Subscribe to the results of a command for the length of the block; they are also kept in our store."""
    found: dict[str, FleetResult] = {}

    async def keep(message: Message) -> None:
        try:
            result = msgspec.json.decode(message.payload, type=FleetResult)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return
        # The broker controls who writes a topic: a component speaks for itself only.
        if result.component == message.topic.rpartition("/")[2]:
            found[result.component] = result
            await at.store.commit(fleet.put_result(at.store.keys, id, result))

    async with open_session(at.settings.mqtt, f"edge-fleet-{secrets.token_hex(4)}", session_expiry=0) as session:
        await session.follow(FleetTopics(at.settings.section(FleetSettings).topic_prefix).results(id), keep)
        yield session, found


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
