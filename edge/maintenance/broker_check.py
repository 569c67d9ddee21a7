"""Examines the brokers, and through them the equipment: reached, let in, allowed to listen."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from edge.config import MqttEquipmentSettings, MqttSettings, Settings, broker_settings
from edge.links.mqtt_broker import Broker, broker_of
from edge.links.mqtt_connection import Connection, connect
from edge.maintenance.finding import Finding, failing, ok
from edge.northbound.topics import Topics

_PRESENCE_WITHIN_S = 0.5
"""How long a retained message may take once its subscription is confirmed."""


@dataclass(frozen=True, slots=True)
class BrokerSubscriber:
    """Who of us listens on a broker, to which topics, and where equipment says whether it is there."""

    subject: str
    topics: Sequence[str]
    presence: str = ""


def brokers(settings: Settings) -> Iterator[tuple[MqttSettings, Sequence[BrokerSubscriber]]]:
    """Name each broker that the settings lead to, with who listens there."""
    at: dict[MqttSettings, list[BrokerSubscriber]] = {}
    if settings.mqtt.url:
        prefix, scopes = settings.northbound.topic_prefix, settings.gateway.scopes
        at[settings.mqtt] = [
            BrokerSubscriber("MES", [topic for scope in scopes for topic in Topics(prefix, scope).read])
        ]
    for name, section in settings.southbound.items():
        if not isinstance(section, MqttEquipmentSettings):
            continue
        topic = f"{section.topic_prefix}/{name}"
        heard = [f"{topic}/{each}" for each in ("answers", "events", "data")]
        listeners = at.setdefault(broker_settings(section, settings.mqtt), [])
        listeners.append(BrokerSubscriber(f"equipment {name}", heard, f"{topic}/presence"))
    yield from at.items()


def address(settings: MqttSettings) -> str:
    """Give a broker's address without user and password."""
    return urlsplit(settings.url).netloc.rpartition("@")[2]


def diagnostic_broker(settings: MqttSettings) -> Broker:
    """Give a broker to which we come as a guest, who leaves nothing there. Raises SettingsError."""
    return broker_of(settings, f"edge-doctor-{uuid.uuid4().hex[:12]}", session_expiry=0)


async def examine_broker(settings: MqttSettings, listeners: Sequence[BrokerSubscriber]) -> AsyncIterator[Finding]:
    """Connect as a guest and listen where the gateway listens. Raises SettingsError and Unavailable."""
    at = address(settings)
    guest = diagnostic_broker(settings)
    async with connect(guest) as connection:
        yield ok(f"broker {at}", "reached" + (", encrypted" if guest.tls else ""))
        refusals = {each.subject: await _refusal(connection, each) for each in listeners}
        said = await read_retained(connection, {each.presence for each in listeners} - {""})
    for each in listeners:
        if refusal := refusals[each.subject]:
            advice = "Look at the broker's access rules for our user."
            yield failing(each.subject, f"the broker at {at} does not let us listen to {refusal}", advice)
        else:
            yield _presence(each, at, said.get(each.presence))


async def _refusal(connection: Connection, listener: BrokerSubscriber) -> str:
    for topic in filter(None, (*listener.topics, listener.presence)):
        if refusal := await connection.subscribe(topic):
            return f"{topic}: {refusal}"
    return ""


async def read_retained(connection: Connection, topics: set[str]) -> Mapping[str, bytes]:
    """Give what a broker retains on topics that we have just subscribed to."""
    said: dict[str, bytes] = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(_PRESENCE_WITHIN_S if topics else 0):
            async for incoming in connection.messages():
                if incoming.message.topic in topics:
                    said[incoming.message.topic] = incoming.message.payload
                if said.keys() == topics:
                    break
    return said


def _presence(listener: BrokerSubscriber, at: str, said: bytes | None) -> Finding:
    match said:
        case b"online":
            return ok(listener.subject, f"online, at {at}")
        case b"offline":
            advice = "Switch it on, and look at its way to the broker: jobs wait for it."
            return failing(listener.subject, f"offline, at {at}", advice)
        case _:
            silent = "; it does not say whether it is there" if listener.presence else ""
            return ok(listener.subject, f"can be heard at {at}, on {', '.join(listener.topics)}{silent}")
