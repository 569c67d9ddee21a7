"""Readers of barcodes and RFID tags: each code is an event that a job waits for, or starts a job."""

import re
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import structlog

from edge.errors import Refused
from edge.instant import Clock, now_ms
from edge.links.line_stream import open_serial_lines, open_tcp_lines
from edge.model.cloudevent import new_id
from edge.southbound.connected_equipment import ConnectedEquipment, open_connected
from edge.southbound.device import Device, DeviceEvent, DeviceEvents
from edge.southbound.reader_settings import ReaderSettings
from edge.southbound.scanned_job import ScannedJob, StartScanned
from edge.station.equipment import Command, EquipmentEvent, StationPort
from edge.store.retry import retry_while_unavailable

_CODES_REMEMBERED = 1000

_log = structlog.get_logger(__name__)


async def _start_nothing(job: ScannedJob) -> None:
    raise Refused("device", f"the gateway starts no jobs from codes: {job.job_order_id}")


def open_reader(
    name: str,
    settings: ReaderSettings,
    station: StationPort,
    scopes: Collection[str],
    start: StartScanned = _start_nothing,
    *,
    clock: Clock = now_ms,
) -> AbstractAsyncContextManager[ConnectedEquipment]:
    """Connect to a reader for the length of the block, and reconnect while it is unavailable."""
    reader = CodeReader(name, settings, station, settings.scope or next(iter(scopes)), start, clock)

    @asynccontextmanager
    async def connect() -> AsyncIterator[tuple[Device, DeviceEvents]]:
        async with _open_lines(settings) as lines:
            yield reader, _device_events(lines)

    return open_connected(name, settings.url, settings.type_ids, station, scopes, connect)


def _open_lines(settings: ReaderSettings) -> AbstractAsyncContextManager[AsyncIterator[str | Refused]]:
    parts, framed = urlsplit(settings.url), settings.framing == "stx"
    if parts.scheme == "serial":
        return open_serial_lines(parts.path, settings.baud, framed=framed)
    return open_tcp_lines(parts.hostname or "", parts.port or 0, framed=framed)


async def _device_events(lines: AsyncIterator[str | Refused]) -> DeviceEvents:
    async for line in lines:
        yield line if isinstance(line, Refused) else {"code": line}


class CodeReader:
    """A reader; it takes no commands. The same code within the dedupe window is one reading."""

    def __init__(
        self, name: str, settings: ReaderSettings, station: StationPort, scope: str, start: StartScanned, clock: Clock
    ) -> None:
        self._name = name
        self._settings = settings
        self._station = station
        self._scope = scope
        self._start = start
        self._clock = clock
        self._pattern = re.compile(settings.pattern)
        self._read_at: dict[str, int] = {}

    @property
    def problem(self) -> str:
        """Always empty: readers do not report faults."""
        return ""

    async def catch_up(self) -> None:
        """Return at once: a reader keeps no codes."""

    async def handle_event(self, device_event: DeviceEvent) -> None:
        """Report a code as an event; if no job uses it, start the job that it stands for.

        Raises Refused for a code that does not match the pattern.
        """
        code = device_event["code"]
        match = self._pattern.fullmatch(code) if self._settings.pattern else None
        if self._settings.pattern and match is None:
            raise Refused("unreadable", f"the code {code!r} does not match the pattern")
        if self._is_repeated(code):
            _log.info("code repeated", equipment=self._name, code=code)
            return
        groups = {name: value for name, value in (match.groupdict() if match else {}).items() if value is not None}
        event_id, data = new_id(), {"code": code} | groups
        source = f"urn:microdcs-edge:equipment:{self._name}"
        event = EquipmentEvent(source, event_id, self._settings.type_ids[0], self._scope, data)
        # The reader does not send it again.
        used = await retry_while_unavailable("codes", partial(self._station.event, event))
        if used is None and self._settings.starts:
            job = ScannedJob(self._scope, code, self._settings.work_master, data, event_id)
            await self._start(job)

    def _is_repeated(self, code: str) -> bool:
        now, before = self._clock(), self._read_at.pop(code, None)
        # A code that is held before the reader is read again and again: each reading prolongs the window.
        self._read_at[code] = now
        if len(self._read_at) > _CODES_REMEMBERED:
            del self._read_at[next(iter(self._read_at))]
        return before is not None and now - before < self._settings.dedupe * 1000

    async def perform(self, command: Command) -> Any:
        """Refuse a command: a reader only reports codes."""
        raise Refused("device", "a reader takes no commands; use an action with the interaction pull_event")

    async def stop(self, command: Command) -> None:
        """Return at once: a reader has nothing to stop."""

    async def settle(self, command: Command) -> None:
        """Return at once: nothing is kept for a command."""
