"""Readers of barcodes and RFID tags: each code is an event that a job waits for, or starts a job."""

import re
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import structlog

from edge.equipment.connected_equipment import ConnectedEquipment, open_connected
from edge.equipment.device import Device, DeviceEvent, DeviceEvents, UnreadableEventError
from edge.equipment.gs1 import NotGs1Error, parse_element_strings
from edge.features.readers.line_stream import LineStream, ReaderSilent, open_serial_lines, open_tcp_lines
from edge.features.readers.scanned_job import ScannedJob, StartScanned, to_job_order_id
from edge.features.readers.settings import GS1_MEMBER, ReaderSettings
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.cloudevent import new_id
from edge.station.equipment import Command, EquipmentEvent, StationPort
from edge.store.background import retry_while_unavailable

_CODES_REMEMBERED = 1000

_log = structlog.get_logger(__name__)


_CODECS = {"utf-8": "utf-8-sig", "latin-1": "latin-1", "cp1252": "cp1252"}
"""The codec of each encoding in the settings; a byte order mark is not a part of a code."""

_REPLACEMENT = "\ufffd"


def decode_code(line: bytes, encoding: str) -> str | UnreadableEventError:
    """Return the text of a line; UnreadableEventError for one in another encoding.

    A replacement character says that the reader itself has lost what it read: such a text identifies nothing.
    """
    try:
        code = line.decode(_CODECS[encoding]).strip(" ")
    except UnicodeDecodeError as error:
        reason = Text.of(
            "byte {start} is not {encoding}: 0x{line:02X}",
            start=error.start + 1,
            encoding=encoding,
            line=line[error.start],
        )
        return UnreadableEventError(reason, line, "Set encoding to that of the reader.")
    if _REPLACEMENT in code:
        return UnreadableEventError("the reader replaced characters that it could not encode", line)
    return code


async def _start_nothing(job: ScannedJob) -> None:
    raise Refused(
        "device", Text.of("the gateway starts no jobs from codes: {job_order_id}", job_order_id=job.job_order_id)
    )


def open_reader(
    name: str,
    settings: ReaderSettings,
    station: StationPort,
    scopes: Collection[str],
    start: StartScanned = _start_nothing,
    *,
    time_s: Callable[[], float] = time.monotonic,
) -> AbstractAsyncContextManager[ConnectedEquipment]:
    """Connect to a reader for the length of the block, and reconnect while it is unavailable.

    `time_s` returns seconds for the dedupe window; the wall clock would stretch it when it is set back.
    """
    reader = CodeReader(name, settings, station, settings.scope or next(iter(scopes)), start, time_s)

    @asynccontextmanager
    async def connect() -> AsyncIterator[tuple[Device, DeviceEvents]]:
        async with _open_lines(settings) as lines:
            yield reader, reader.decode(lines)

    return open_connected(name, settings.url, settings.type_ids, station, scopes, connect)


def _open_lines(settings: ReaderSettings) -> AbstractAsyncContextManager[LineStream]:
    parts, framed = urlsplit(settings.url), settings.framing == "stx"
    if parts.scheme == "serial":
        return open_serial_lines(
            parts.path, settings.baud, framed=framed, gap_s=settings.gap, silence_s=settings.silence
        )
    return open_tcp_lines(
        parts.hostname or "",
        parts.port or 0,
        framed=framed,
        gap_s=settings.gap,
        keepalive_s=settings.keepalive,
        silence_s=settings.silence,
    )


class CodeReader:
    """A reader; it takes no commands. The same code within the dedupe window is one reading."""

    def __init__(
        self,
        name: str,
        settings: ReaderSettings,
        station: StationPort,
        scope: str,
        start: StartScanned,
        time_s: Callable[[], float],
    ) -> None:
        self._name = name
        self._settings = settings
        self._station = station
        self._scope = scope
        self._start = start
        self._time_s = time_s
        self._pattern = re.compile(settings.pattern)
        self._read_at: dict[str, float] = {}
        self._silence: str | Text = ""
        self._unreadable: str | Text = ""

    @property
    def problem(self) -> str | Text:
        """Why the reader is silent for too long, or its last code cannot be read; empty otherwise."""
        return self._silence or self._unreadable

    async def decode(self, lines: LineStream) -> DeviceEvents:
        """Yield the lines as codes; UnreadableEventError for a line in another encoding."""
        try:
            async for line in lines:
                self._silence = ""
                event = line if isinstance(line, Refused) else self._decoded(line)
                if event is not None:
                    self._unreadable = (
                        Text.of("the last code cannot be read: {reason}", reason=event)
                        if isinstance(event, Refused)
                        else ""
                    )
                    yield event
        except ReaderSilent as error:
            # A reader that hangs may accept the next connection at once.
            self._silence = error.text
            raise

    def _decoded(self, line: bytes) -> DeviceEvent | Refused | None:
        """Return the event of a line; None for one that is not a code."""
        code = decode_code(line, self._settings.encoding)
        if code in {"", *self._settings.ignore}:
            return None
        return code if isinstance(code, UnreadableEventError) else {"code": code}

    async def catch_up(self) -> None:
        """Return at once: a reader keeps no codes."""

    async def handle_event(self, device_event: DeviceEvent) -> None:
        """Report a code as an event; if no job uses it, start the job that it names.

        Raises UnreadableEventError for a code that is not what the settings require.
        """
        code = device_event["code"]
        data = {"code": code} | self._groups(code) | self._identifiers(code)
        if self._is_repeated(code):
            _log.info("code repeated", equipment=self._name, code=code)
            return
        event_id = new_id()
        source = f"urn:microdcs-edge:equipment:{self._name}"
        event = EquipmentEvent(source, event_id, self._settings.type_ids[0], self._scope, data)
        # The reader does not send it again.
        used = await retry_while_unavailable("codes", partial(self._station.event, event))
        if used is None and self._settings.starts:
            job_id = to_job_order_id(self._job_id(data))
            await self._start(ScannedJob(self._scope, job_id, self._settings.work_master, data, event_id))

    def _groups(self, code: str) -> dict[str, str]:
        """Return the named groups of the pattern in a code."""
        if not self._settings.pattern:
            return {}
        if (match := self._pattern.fullmatch(code)) is None:
            raise UnreadableEventError(
                Text.of("the code {code!r} does not match the pattern", code=code), code.encode()
            )
        return {name: value for name, value in match.groupdict().items() if value is not None}

    def _identifiers(self, code: str) -> dict[str, str]:
        """Return the Application Identifiers of a code, when the settings ask for them."""
        if self._settings.gs1 == "off":
            return {}
        try:
            values = parse_element_strings(code)
        except NotGs1Error as error:
            if self._settings.gs1 == "required":
                raise UnreadableEventError(
                    Text.of("the code {code!r} is not a GS1 code: {reason}", code=code, reason=error), code.encode()
                ) from None
            return {}
        return {f"{GS1_MEMBER}{number}": value for number, value in values.items()}

    def _job_id(self, data: Mapping[str, str]) -> str:
        """Return the text of a code that identifies its job."""
        member = self._settings.job_id or "code"
        if not (text := data.get(member)):
            fault = Text.of(
                "the code {data!r} has no {member}{gs1_fault}",
                data=data["code"],
                member=member,
                gs1_fault=_gs1_fault(data["code"], member),
            )
            raise UnreadableEventError(fault, data["code"].encode())
        return text

    def _is_repeated(self, code: str) -> bool:
        now, before = self._time_s(), self._read_at.pop(code, None)
        # A code that is held before the reader is read again and again: each reading prolongs the window.
        self._read_at[code] = now
        if len(self._read_at) > _CODES_REMEMBERED:
            del self._read_at[next(iter(self._read_at))]
        return before is not None and now - before < self._settings.dedupe

    async def perform(self, command: Command) -> Any:
        """Refuse a command: a reader only reports codes."""
        raise Refused("device", "a reader takes no commands; use an action with the interaction pull_event")

    async def stop(self, command: Command) -> None:
        """Return at once: a reader has nothing to stop."""

    async def settle(self, command: Command) -> None:
        """Return at once: nothing is kept for a command."""


def _gs1_fault(code: str, member: str) -> str:
    """Return why a code has no Application Identifier, as the end of a sentence; empty where that is not the cause."""
    if not member.startswith(GS1_MEMBER):
        return ""
    try:
        parse_element_strings(code)
    except NotGs1Error as error:
        return f": {error}"
    return ""
