"""Describes this gateway as a component of the plant."""

import asyncio
import os
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from edge import __version__
from edge.access.components import Report, announced
from edge.app.parts import GatewayParts
from edge.app.tls_files import tls_files
from edge.config import Settings
from edge.features.telemetry.store import alarms
from edge.foundation.instant import now_ms
from edge.model.component import Component, PluginState
from edge.store.scripts import share_script

if TYPE_CHECKING:
    from edge.features.flows.nodes.registry import NodeKinds

_CERTIFICATES_EVERY_S = 3600.0


class GatewayDescription:
    """The state of a gateway, as its sign of life shows it."""

    def __init__(self, parts: GatewayParts, started: int, node_kinds: Iterable[str]) -> None:
        self._parts = parts
        self._started = started
        self._node_kinds = tuple(node_kinds)
        self._expiry = ""
        self._expiry_due = 0.0

    async def describe(self) -> Report:
        """Return the state of the gateway now."""
        if (now := time.monotonic()) >= self._expiry_due:
            self._expiry = await asyncio.to_thread(earliest_expiry, self._parts.settings)
            self._expiry_due = now + _CERTIFICATES_EVERY_S
        settings = self._parts.settings
        component = Component(
            id=settings.gateway.name,
            kind="gateway",
            version=__version__,
            started=self._started,
            host=socket.gethostname(),
            pid=os.getpid(),
            labels=settings.fleet.labels,
            scopes=settings.gateway.scopes,
            problems=self._parts.health.problem_line,
            jobs=self._parts.active_runs.count,
            alarms=await alarms.count(self._parts.store) if settings.telemetry.mode == "on" else None,
            certificate_expiry=self._expiry,
            drift=self._parts.drift.text,
        )
        return Report(component, tuple(self._plugins()))

    def _plugins(self) -> Iterator[PluginState]:
        for each in self._parts.watch.health:
            state = {True: "connected", False: "disconnected", None: "unknown"}[each.connected]
            yield PluginState(name=each.name, kind=f"equipment {each.kind}", state=state, problem=each.obstacle)
        for name in self._node_kinds:
            yield PluginState(name=name, kind="node kind", state="loaded")


async def join_plant(
    stack: AsyncExitStack, parts: GatewayParts, kinds: "NodeKinds | None", settings_file: Path | None
) -> None:
    """Enter this gateway in the list of components until the stack closes; execute signed commands if they are on."""
    await share_script(parts.store)
    of_site = sorted(name for name, kind in (kinds or {}).items() if kind.in_worker)
    described = GatewayDescription(parts, now_ms(), of_site)
    name, instance = parts.settings.gateway.name, parts.instance
    held = instance.lease_held
    await stack.enter_async_context(
        announced(parts.store, name, instance.token, described.describe, holds_lease=lambda: held.is_open)
    )
    if parts.settings.fleet.listen != "off":
        # Imported only when signed commands are on.
        from edge.features.fleet.service import open_fleet  # noqa: PLC0415

        await open_fleet(stack, parts, described.describe, settings_file)


def earliest_expiry(settings: Settings) -> str:
    """Return the date on which the first certificate of the gateway expires; "" without a readable certificate."""
    paths = [path for name, path in tls_files(settings).items() if not name.endswith(".key_file")]
    if settings.opcua.endpoint:
        paths.append(Path(settings.opcua.pki, "own.der"))
    found = [expiry for path in paths if (expiry := _expiry(path)) is not None]
    return min(found).isoformat() if found else ""


def _expiry(path: Path) -> date | None:
    # Imported only when there are certificates.
    from edge.opcua.application_certificate import read_certificate  # noqa: PLC0415

    try:
        return read_certificate(path).not_valid_after_utc.date()
    except (OSError, ValueError):
        return None
