"""Describes this gateway as a component of the plant."""

import asyncio
import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from datetime import date
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from edge import __version__
from edge.access.components import Describe, Report, announced
from edge.app.parts import GatewayParts
from edge.config import Settings
from edge.model.plant import Component, PluginState
from edge.store.client import share_script

_CERTIFICATES_EVERY_S = 3600.0


class ComponentPart(Struct, frozen=True):
    """What a feature adds to the heartbeat: fields of the component, and what it has loaded."""

    fields: Mapping[str, Any] = {}
    plugins: tuple[PluginState, ...] = ()


class GatewayDescription:
    """The state of a gateway, as its heartbeat shows it."""

    def __init__(self, parts: GatewayParts, started: int) -> None:
        self._parts = parts
        self._started = started
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
            labels=settings.labels,
            scopes=settings.gateway.scopes,
            problems=self._parts.health.problem_text,
            jobs=self._parts.active_runs.count,
            certificate_expiry=self._expiry,
        )
        added = [await item() for opened in self._parts.opened for item in opened.described]
        fields = {name: value for component_part in added for name, value in component_part.fields.items()}
        plugins = (*self._plugins(), *(plugin for component_part in added for plugin in component_part.plugins))
        return Report(replace(component, **fields), plugins)

    def _plugins(self) -> Iterator[PluginState]:
        for device in self._parts.watch.health:
            state = {True: "connected", False: "disconnected", None: "unknown"}[device.connected]
            yield PluginState(
                name=device.name, kind=f"equipment {device.kind}", state=state, problem=str(device.obstacle)
            )


async def join_plant(stack: AsyncExitStack, parts: GatewayParts, describe: Describe) -> None:
    """Enter this gateway in the list of components until the stack closes."""
    await share_script(parts.store)
    name, instance = parts.settings.gateway.name, parts.instance
    gate = instance.lease_held
    await stack.enter_async_context(
        announced(parts.store, name, instance.token, describe, holds_lease=lambda: gate.is_open)
    )


def earliest_expiry(settings: Settings) -> str:
    """Return the date on which the first certificate of the gateway expires; "" without a readable certificate."""
    paths = [path for name, path in settings.tls_files.items() if not name.endswith(".key_file")]
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
