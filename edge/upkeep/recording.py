"""Records what goes between the gateway and a piece of equipment, without what is secret, so as to play it back."""

import os
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from edge import __version__
from edge.config import MqttEquipmentSettings, MqttSettings, Settings, broker_settings
from edge.errors import Refused, SettingsError, Unavailable
from edge.links.mqtt import Message, open_session
from edge.model.cloudevent import JSON, decode_data
from edge.upkeep.redaction import Redact, redact_data, redactor

SESSION_EXPIRY_SECONDS = 60
"""How long the broker keeps what we miss while the connection is lost."""


class Beginning(Struct, frozen=True, kw_only=True):
    """The first line of a recording: whose it is, and when it was begun (RFC 3339, UTC)."""

    equipment: str
    kind: str
    type_ids: tuple[str, ...]
    version: str
    begun_at: str


class Recorded(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message, `after` so many seconds. Topics are those below the topic of the equipment, such as `answers`.

    `payload` is JSON where `content_type` says so, else text; `hidden_bytes` tells of one that is neither.
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


@asynccontextmanager
async def recording(
    name: str, settings: Settings, secrets: set[str], file: Path, tell: Callable[[Recorded], None]
) -> AsyncIterator[str]:
    """Write what is said on the topics of the equipment `name` to a new file, for the length of the block.

    Gives the topic filter and the broker. Raises SettingsError when it cannot be recorded, Unavailable when the broker
    is away or the file cannot be written; then none is left behind.
    """
    section = settings.southbound.get(name)
    if section is None:
        known = ", ".join(settings.southbound) or "none"
        raise SettingsError([f"the settings have no equipment {name}"], f"There is: {known}.")
    if not isinstance(section, MqttEquipmentSettings):
        advice = "What becomes of its commands, `edge jobs watch` tells."
        raise SettingsError([f"southbound.{name}: only what goes over MQTT can be listened to from outside"], advice)
    broker = broker_settings(section, settings.mqtt)
    topic = f"{section.topic_prefix}/{name}"
    beginning = Beginning(
        equipment=name,
        kind=section.kind,
        type_ids=section.type_ids,
        version=__version__,
        begun_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with _new(file) as output:
        recorder = _Recorder(topic, _redact(secrets, broker), output, tell)
        recorder.write(beginning)
        opening = open_session(broker, f"edge-record-{uuid.uuid4().hex[:12]}", session_expiry=SESSION_EXPIRY_SECONDS)
        async with AsyncExitStack() as listening:
            with ExitStack() as unless_it_listens:
                unless_it_listens.callback(file.unlink)
                session = await listening.enter_async_context(opening)
                await session.subscribe(f"{topic}/+", recorder.take)
                unless_it_listens.pop_all()
            yield f"{topic}/+ at {urlsplit(broker.url).netloc.rpartition('@')[2]}"


class _Recorder:
    def __init__(self, topic: str, redact: Redact, output: BinaryIO, tell: Callable[[Recorded], None]) -> None:
        self._topic = topic
        self._redact = redact
        self._output = output
        self._tell = tell
        self._began: int | None = None

    async def take(self, message: Message) -> None:
        at = message.received_at or 0
        if self._began is None:
            self._began = at
        recorded = self._recorded(message, (at - self._began) / 1000)
        self.write(recorded)
        self._tell(recorded)

    def write(self, line: Struct) -> None:
        """Write a line at once: who is interrupted has all that came."""
        self._output.write(msgspec.json.encode(line) + b"\n")
        self._output.flush()

    def _recorded(self, message: Message, after: float) -> Recorded:
        payload, hidden_bytes = _payload(message)
        return Recorded(
            after=after,
            topic=self._below(message.topic),
            payload=redact_data(payload, self._redact),
            hidden_bytes=hidden_bytes,
            content_type=message.content_type,
            properties=redact_data(dict(message.user_properties), self._redact),
            response_topic=message.response_topic and self._below(message.response_topic),
            correlation_data=message.correlation_data.hex() if message.correlation_data else None,
            retain=message.retain,
        )

    def _below(self, topic: str) -> str:
        prefix = f"{self._topic}/"
        return topic.removeprefix(prefix) if topic.startswith(prefix) else str(redact_data(topic, self._redact))


def _payload(message: Message) -> tuple[Any, int]:
    """Give a payload as JSON or text; of one that is neither, in which no secret could be found, its size in bytes."""
    try:
        if message.payload and "json" in (message.content_type or ""):
            return decode_data(JSON, message.payload), 0
        return message.payload.decode() or None, 0
    except (Refused, UnicodeDecodeError):
        return None, len(message.payload)


def _redact(secrets: set[str], broker: MqttSettings) -> Redact:
    hosts = {socket.gethostname(), urlsplit(broker.url).hostname or "", os.environ.get("HOSTNAME", "")}
    return redactor(secrets, hosts - {"", "localhost"})


def _new(file: Path) -> BinaryIO:
    try:
        return file.open("xb")
    except FileExistsError:
        raise Unavailable(f"{file} is there already", "Name a new file, or remove that one.") from None
    except OSError as error:
        raise Unavailable(f"{file} cannot be written: {error.strerror}", "Name a file where you may write.") from error
