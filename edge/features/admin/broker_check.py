"""Examines brokers and the presence of equipment: connection, login, permission to subscribe."""

import pkgutil
from collections.abc import AsyncIterator, Iterator, Sequence

from edge.app.features import features
from edge.config import MqttEquipmentSettings, MqttSettings, Settings, broker_settings
from edge.foundation.text import Text, join_texts
from edge.links.mqtt_broker import BrokerSubscriber, address_of, diagnostic_broker
from edge.links.mqtt_connection import Connection, connect
from edge.links.topic_probe import read_retained
from edge.model.finding import HealthFinding, failing, ok
from edge.northbound.topics import Topics


def brokers(settings: Settings) -> Iterator[tuple[MqttSettings, Sequence[BrokerSubscriber]]]:
    """Yield each broker of the settings with its subscribers."""
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
        heard = [f"{topic}/{text}" for text in ("answers", "events", "data")]
        listeners = at.setdefault(broker_settings(section, settings.mqtt), [])
        listeners.append(BrokerSubscriber(Text.of("equipment {name}", name=name), heard, f"{topic}/presence"))
    for feature in features():
        if feature.brokers:
            for mqtt, subscriber in pkgutil.resolve_name(feature.brokers)(settings):
                at.setdefault(mqtt, []).append(subscriber)
    yield from at.items()


async def examine_broker(settings: MqttSettings, listeners: Sequence[BrokerSubscriber]) -> AsyncIterator[HealthFinding]:
    """Connect with a temporary session and subscribe as the gateway does. Raises SettingsError and Unavailable."""
    at = address_of(settings)
    target = diagnostic_broker(settings)
    async with connect(target) as connection:
        yield ok(Text.of("broker {at}", at=at), Text.of("reached, encrypted") if target.tls else Text.of("reached"))
        refusals = {listener.subject: await _refusal(connection, listener) for listener in listeners}
        retained = await read_retained(connection, {listener.presence for listener in listeners} - {""})
    for broker_subscriber in listeners:
        if refusal := refusals[broker_subscriber.subject]:
            advice = "Check the access rules of the broker for the user of the gateway."
            yield failing(
                broker_subscriber.subject,
                Text.of("the broker at {at} refuses the subscription to {refusal}", at=at, refusal=refusal),
                advice,
            )
        else:
            yield _presence(broker_subscriber, at, retained.get(broker_subscriber.presence))


async def _refusal(connection: Connection, listener: BrokerSubscriber) -> str:
    for topic in filter(None, (*listener.topics, listener.presence)):
        if refusal := await connection.subscribe(topic):
            return f"{topic}: {refusal}"
    return ""


def _presence(listener: BrokerSubscriber, at: str, retained: bytes | None) -> HealthFinding:
    match listener.is_online(retained):
        case True:
            return ok(listener.subject, Text.of("online, at {at}", at=at))
        case False:
            advice = Text.of(
                "Switch it on and check its connection to the broker; {waiting}.", waiting=listener.waiting
            )
            return failing(listener.subject, Text.of("offline, at {at}", at=at), advice)
        case _:
            subscribed = Text.of("subscribed at {at} to {topics}", at=at, topics=", ".join(listener.topics))
            if listener.presence:
                subscribed = join_texts("; ", (subscribed, Text.of("presence unknown")))
            return ok(listener.subject, subscribed)
