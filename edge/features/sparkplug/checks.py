"""What `edge doctor` tries at the brokers of the edge node."""

from collections.abc import Iterator

from msgspec.structs import replace

from edge.config import MqttSettings, Settings, broker_settings
from edge.features.sparkplug.session import HostState, read_state
from edge.features.sparkplug.settings import SparkplugSettings
from edge.features.sparkplug.table import NodeTopics, state_topic
from edge.foundation.text import Text
from edge.links.mqtt_broker import BrokerSubscriber


def brokers(settings: Settings) -> Iterator[tuple[MqttSettings, BrokerSubscriber]]:
    """Yield each broker of the edge node, with the topics to which it subscribes there."""
    sparkplug = settings.section(SparkplugSettings)
    if not sparkplug.group:
        return
    first = broker_settings(sparkplug, settings.mqtt)
    for url in (first.url, *sparkplug.further_urls):
        yield replace(first, url=url), _edge_node(settings)


def _edge_node(settings: Settings) -> BrokerSubscriber:
    sparkplug = settings.section(SparkplugSettings)
    topics = NodeTopics(sparkplug.group, sparkplug.edge_node or settings.gateway.scopes[0])
    host = sparkplug.primary_host
    commands = (topics.of_node("NCMD"), topics.of_device("DCMD", "+"))
    subject = Text.of("Sparkplug host {host}", host=host) if host else Text.of("Sparkplug edge node")
    return BrokerSubscriber(
        subject, commands, state_topic(host) if host else "", Text.of("the edge node waits for it"), _is_online
    )


def _is_online(retained: bytes | None) -> bool | None:
    """Return what the state of a host says, which is JSON; None for another message."""
    state = read_state(HostState(), retained) if retained is not None else ""
    return state.online if isinstance(state, HostState) else None
