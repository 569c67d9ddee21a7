"""Serve sidecars over MessagePack-RPC: execute their calls as those of the MES, and send them the same events."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec

from edge.access.components import SidecarReport, register_sidecar
from edge.config import RpcSettings
from edge.foundation.errors import Refused
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.links.cloudevent_rpc import form_of, from_map, to_map
from edge.links.rpc_server import Method, RpcServer, open_server
from edge.northbound.calls import CallHandler, IncomingCall
from edge.northbound.events import change_events, load_changed_job, progress_event
from edge.station.runs import Progress, Runs
from edge.store import changes
from edge.store.background import restart_on_defect, restart_on_outage
from edge.store.client import Store
from edge.store.server_time import server_time


@asynccontextmanager
async def open_rpc(
    settings: RpcSettings,
    store: Store,
    runs: Runs,
    calls: CallHandler,
    source: str,
    scopes: Sequence[str],
    *,
    version: int = 2,
) -> AsyncIterator[str]:
    """Serve calls and events until the end of the block; yield the address. Raises as `open_server` does.

    `version` is that of events about progress.
    """
    # An event without scope is for the only one.
    only = scopes[0] if len(scopes) == 1 else ""
    methods: dict[str, Method] = {
        "publish": partial(_publish, calls, only),
        "heartbeat": _heartbeat,
        "register": partial(_register, store),
    }
    async with open_server(settings, methods) as server:
        notifier = _EventNotifier(server, store, source, version)
        runs.listeners.append(notifier.watch)
        follow = restart_on_defect(store.defects, "rpc events", partial(notifier.follow, scopes))
        async with background_task(follow, "rpc events"):
            yield server.url


async def _publish(calls: CallHandler, scope: str, params: Sequence[Any]) -> object:
    match params:
        case [dict(event)] | [dict(event), dict() | None]:
            answer = await calls.answer(parse_call(scope, event))
            await calls.record_received(answer)
            return [to_map(answer, form_of(event))]
        case _:
            reason = "publish takes a CloudEvent and optionally its transportmetadata."
            raise Refused("invalid_params", reason, "Send both as maps.")


def parse_call(scope: str, event: Mapping[Any, Any]) -> IncomingCall:
    """Parse the map of an event that names no scope other than its `subject`."""
    attributes = {name: value for name, value in event.items() if isinstance(name, str) and isinstance(value, str)}
    try:
        return IncomingCall(from_map(event), attributes, scope, "rpc", _raw_bytes(event))
    except Refused as refusal:
        return IncomingCall(refusal, attributes, scope, "rpc", _raw_bytes(event))


def _raw_bytes(event: Mapping[Any, Any]) -> bytes:
    # A map of MessagePack may hold values that JSON cannot express.
    return repr(event).encode(errors="backslashreplace")


async def _heartbeat(_: Sequence[Any]) -> None:
    """Return nothing: the response shows the caller that the gateway works, the call shows that the client does."""


async def _register(store: Store, params: Sequence[Any]) -> object:
    """Register a sidecar as a component; each further call is a heartbeat."""
    match params:
        case [dict(given)]:
            try:
                report = msgspec.convert(given, SidecarReport)
            except msgspec.ValidationError as error:
                raise Refused(
                    "invalid_params", Text.of("the description cannot be used: {reason}", reason=error), "Correct it."
                ) from None
            within_s = await register_sidecar(store, report, await server_time(store) // 1000)
            return {"next_within_s": within_s}
        case _:
            reason = "register takes one map: id, token, and version, started, host, problems, labels if wanted."
            raise Refused("invalid_params", reason, "Send it as a map.")


class _EventNotifier:
    """Sends events to the connected clients; earlier events are in the store, where clients may request them."""

    def __init__(self, server: RpcServer, store: Store, source: str, version: int) -> None:
        self._server = server
        self._store = store
        self._source = source
        self._version = version

    def watch(self, progress: Progress) -> None:
        """Send the progress of a run."""
        if self._server.clients:
            self._server.notify("cloudevent", to_map(progress_event(self._source, progress, self._version)), "data")

    async def follow(self, scopes: Iterable[str]) -> None:
        """Send every transition until cancelled; retry while the store is unavailable."""
        positions: dict[str, str] = {}

        async def send() -> None:
            positions.update(positions or await changes.latest(self._store, scopes))
            async for change in changes.follow(self._store, positions):
                await self._notify(change)
                positions[change.scope] = change.position

        await restart_on_outage("rpc events", send)

    async def _notify(self, change: changes.Change) -> None:
        if not self._server.clients or (found := await load_changed_job(self._store, change)) is None:
            return
        for event in change_events(self._source, change, *found):
            self._server.notify("cloudevent", to_map(event), "events")
