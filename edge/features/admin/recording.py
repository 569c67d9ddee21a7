"""Records the messages between the gateway and equipment without secrets, for later replay."""

import asyncio
import os
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from edge import __version__
from edge.app.redaction import Redact, redact_data, redact_settings, redactor
from edge.config import EquipmentSettings, MqttEquipmentSettings, Settings, broker_settings
from edge.foundation.errors import Refused, SettingsError, Unavailable, unwrap_group
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.links.mqtt import Message, open_session
from edge.model.cloudevent import JSON, decode_data
from edge.model.equipment_traffic import TrafficKind, TrafficRecord
from edge.store.open_store import has_running_server, open_store
from edge.store.traffic_channel import subscribe

SESSION_EXPIRY_SECONDS = 60
"""How long the broker keeps messages for the recording after a lost connection."""
MOST_BYTES = 100 * 1024 * 1024
"""The usual limit of a recording, so that talkative equipment does not fill the disk."""
_NO_ROOM = "Free space on the disk, or use another file. Records written before are kept."
_CONNECT_SECONDS = 3.0
"""Time limit of the connection to the broker."""
BEGIN_SECONDS = 5.0
"""Maximum time until a running gateway notices the recording."""


def create_file(file: Path) -> FileIO:
    """Create the file of a recording. Raises Unavailable when it exists or cannot be written."""
    try:
        return file.open("xb", buffering=0)
    except FileExistsError:
        raise Unavailable(Text.of("{file} exists already", file=file), "Name a new file, or remove that one.") from None
    except OSError as error:
        raise Unavailable(
            Text.of("{file} cannot be written: {reason}", file=file, reason=error.strerror),
            "Name a file in a writable folder.",
        ) from error


class RecordingHeader(Struct, frozen=True, kw_only=True):
    """The first line of a recording: equipment, its settings, and the start (RFC 3339, UTC)."""

    equipment: str
    settings: Mapping[str, Any]
    version: str
    begun_at: str


class MessageRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message, `after` seconds from the first. Topics are below that of the equipment, such as `answers`.

    `payload` is JSON if `content_type` is, else text; `hidden_bytes` is the size of a payload that is neither.
    """

    after: float
    topic: str
    payload: Any = None
    hidden_bytes: int = 0
    content_type: str | None = None
    properties: Mapping[str, str] = {}
    response_topic: str | None = None
    correlation_data: str | None = None
    retain: bool = False


class ExchangeRecord(Struct, frozen=True, kw_only=True):
    """One exchange with the equipment in the traffic of a gateway, `after` seconds from the first record."""

    after: float
    gateway: str
    what: TrafficKind
    data: Any


Line = MessageRecord | ExchangeRecord
"""One record: a message at the broker, or an exchange in the traffic of a gateway."""


@asynccontextmanager
async def recording(
    name: str,
    settings: Settings,
    secrets: set[str],
    file: Path,
    on_line: Callable[[Line], None],
    begin_s: float = BEGIN_SECONDS,
    create: Callable[[Path], FileIO] = create_file,
    most_bytes: int = MOST_BYTES,
) -> AsyncIterator[Text]:
    """Record the messages of the equipment `name` to a new file for the length of the block.

    Yields the recorded source, after at most `begin_s` seconds for the gateway to notice the recording. Raises
    SettingsError when there is no such equipment, Unavailable when the broker or the store is unavailable, no gateway
    has sent traffic by the end of the block, or the file cannot be written or would exceed `most_bytes`. An empty file
    is removed then.
    """
    section = settings.southbound.get(name)
    if section is None:
        known = ", ".join(settings.southbound) or Text.of("none")
        raise SettingsError(
            [Text.of("the settings have no equipment {name}", name=name)],
            Text.of("Known equipment: {known}.", known=known),
        )
    redact = _redact(secrets, section, settings)
    with _recorder(file, create, partial(_Recorder, redact=redact, on_line=on_line, room=most_bytes)) as recorder:
        recorder.begin(name, section)
        match section:
            case MqttEquipmentSettings():
                listening_there = _record_broker(name, section, settings, recorder)
            case _:
                listening_there = _record_gateways(name, settings, recorder, begin_s)
        async with listening_there as place:
            yield place


class _Recorder:
    def __init__(self, output: FileIO, redact: Redact, on_line: Callable[[Line], None], room: int) -> None:
        self.redact = redact
        self._most_bytes = self._room = room
        self._output = output
        self._on_line = on_line
        self._began: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no record was written yet."""
        return self._began is None

    def begin(self, name: str, section: EquipmentSettings) -> None:
        """Write the first line."""
        begun_at = datetime.now(UTC).isoformat(timespec="seconds")
        settings = redact_data(redact_settings(section), self.redact)
        self._write(RecordingHeader(equipment=name, settings=settings, version=__version__, begun_at=begun_at))

    def after(self, at: int) -> float:
        """Return the seconds from the first record to an instant in milliseconds since the epoch."""
        if self._began is None:
            self._began = at
        return (at - self._began) / 1000

    def take(self, line: Line) -> None:
        """Write a record and report it to the listener."""
        self._write(line)
        self._on_line(line)

    def _write(self, line: Struct) -> None:
        # Unbuffered, so that an interrupted recording is complete.
        written = msgspec.json.encode(line) + b"\n"
        if len(written) > self._room:
            raise Unavailable(
                Text.of("the recording ends: its limit of {most:,} bytes is reached", most=self._most_bytes),
                "Records written before are kept. Set a higher limit.",
            )
        self._room -= len(written)
        try:
            is_full = self._output.write(written) < len(written)
        except OSError as error:
            raise Unavailable(Text.of("the recording ends: {reason}", reason=error.strerror), _NO_ROOM) from error
        if is_full:
            raise Unavailable("the recording ends: the disk is full", _NO_ROOM)


@contextmanager
def _recorder(file: Path, create: Callable[[Path], FileIO], make: Callable[[FileIO], _Recorder]) -> Iterator[_Recorder]:
    with create(file) as output:
        recorder = make(output)
        try:
            yield recorder
        except BaseException:
            # Also after Ctrl-C: an empty file would block the next recording.
            if recorder.is_empty:
                file.unlink()
            raise


@asynccontextmanager
async def _record_broker(
    name: str, section: MqttEquipmentSettings, settings: Settings, recorder: _Recorder
) -> AsyncIterator[Text]:
    broker = broker_settings(section, settings.mqtt)
    topic = f"{section.topic_prefix}/{name}"

    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def take(message: Message) -> None:
        try:
            recorder.take(_recorded(message, recorder.after(message.received_at or 0), f"{topic}/", recorder.redact))
        except Exception as error:  # noqa: BLE001 - the session would continue; a recording has no gaps, whatever the error
            if not ended.done():
                ended.set_exception(error)

    client_id = f"edge-record-{uuid.uuid4().hex[:12]}"
    opening = open_session(broker, client_id, session_expiry=SESSION_EXPIRY_SECONDS, connect_timeout=_CONNECT_SECONDS)
    async with opening as session:
        await session.subscribe(f"{topic}/+", take)
        with unwrap_group():
            async with background_task(_wait_for(ended), f"record {name}"):
                host = urlsplit(broker.url).netloc.rpartition("@")[2]
                yield Text.of("{topic} at {host}", topic=f"{topic}/+", host=host)


async def _wait_for(ended: asyncio.Future[None]) -> None:
    await ended


@asynccontextmanager
async def _record_gateways(name: str, settings: Settings, recorder: _Recorder, begin_s: float) -> AsyncIterator[Text]:
    if not await has_running_server(settings.redis):
        # A server of the recording would block the gateway: a directory has one server.
        advice = "Start the gateway first: its embedded store exists only while it runs."
        raise Unavailable(Text.of("no gateway runs the store {url}", url=settings.redis.url), advice)
    begun: dict[str, Any] = {}
    is_begun = asyncio.Event()

    async def take_all(records: AsyncIterator[TrafficRecord]) -> None:
        async for passed in records:
            if passed.what is TrafficKind.BEGUN:
                # Repeated for another recording of the same process.
                process = passed.data.get("process") if isinstance(passed.data, dict) else None
                if process and begun.get(passed.gateway) == process:
                    continue
                begun[passed.gateway] = process
                is_begun.set()
            recorder.take(_exchange_record(passed, recorder.after(passed.at), recorder.redact))

    async with open_store(settings.redis, consumer=None) as store, subscribe(store, name) as records:
        with unwrap_group():
            async with background_task(take_all(records), f"record {name}"):
                try:
                    async with asyncio.timeout(begin_s):
                        await is_begun.wait()
                    place = Text.of("the traffic of {name} by {gateways}", name=name, gateways=", ".join(begun))
                except TimeoutError:
                    place = Text.of("the traffic of {name}; no gateway is running yet", name=name)
                yield place
    if recorder.is_empty:
        advice = "Check that it runs with this equipment in its settings: systemctl status microdcs-edge"
        raise Unavailable(Text.of("no gateway has sent traffic of {name}", name=name), advice)


def _exchange_record(passed: TrafficRecord, after: float, redact: Redact) -> ExchangeRecord:
    try:
        gateway, data = redact_data([passed.gateway, passed.data], redact)
    except RecursionError as error:
        raise Unavailable(Text.of("{gateway} sent data that is nested too deep", gateway=passed.gateway)) from error
    return ExchangeRecord(after=after, gateway=gateway, what=passed.what, data=data)


def _recorded(message: Message, after: float, prefix: str, redact: Redact) -> MessageRecord:
    payload, hidden_bytes = _payload(message)
    return MessageRecord(
        after=after,
        topic=_below(prefix, message.topic, redact),
        payload=redact_data(payload, redact),
        hidden_bytes=hidden_bytes,
        content_type=message.content_type,
        properties=redact_data(dict(message.user_properties), redact),
        response_topic=message.response_topic and _below(prefix, message.response_topic, redact),
        correlation_data=message.correlation_data.hex() if message.correlation_data else None,
        retain=message.retain,
    )


def _below(prefix: str, topic: str, redact: Redact) -> str:
    return topic.removeprefix(prefix) if topic.startswith(prefix) else str(redact_data(topic, redact))


def _payload(message: Message) -> tuple[Any, int]:
    """Return a payload as JSON or text; of other payloads, which cannot be redacted, only the size in bytes."""
    try:
        if message.payload and "json" in (message.content_type or ""):
            return decode_data(JSON, message.payload), 0
        return message.payload.decode() or None, 0
    except (Refused, UnicodeDecodeError):
        return None, len(message.payload)


def _redact(secrets: set[str], section: EquipmentSettings, settings: Settings) -> Redact:
    names = {socket.gethostname(), os.environ.get("HOSTNAME", ""), urlsplit(settings.mqtt.url).hostname or ""}
    names |= {urlsplit(getattr(section, "url", "")).hostname or ""}
    # A controller receives it as an argument without a name.
    names.add(getattr(section, "product_instance_uri", ""))
    return redactor(secrets, names - {"", "localhost"})
