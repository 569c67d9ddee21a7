"""`mqtt.publish`: publishes its input to an MQTT topic."""

from collections.abc import Iterable

from edge.features.flows.nodes.kind import Act, Attempt, Inputs, NodeConfig, NodeKind
from edge.features.flows.nodes.outside import PublishMessage

_LONGEST_TOPIC = 65_535


class MqttPublishConfig(NodeConfig, frozen=True):
    """The topic, and whether the broker retains the message."""

    topic: str
    retain: bool = False


def _faults(config: MqttPublishConfig, _predecessors: Iterable[str]) -> Iterable[str]:
    topic = config.topic
    if not topic or set(topic) & set("+#\0") or len(topic.encode(errors="replace")) > _LONGEST_TOPIC:
        yield f"{topic!r} is not a topic to publish to (MQTT 5.0, 4.7.3): 1 to 65,535 bytes without '+', '#' and NUL"


def _action(config: MqttPublishConfig, attempt: Attempt) -> PublishMessage:
    return PublishMessage(config.topic, config.retain, attempt.input)


KIND = NodeKind(
    "mqtt.publish",
    "Publishes its input to an MQTT topic.",
    MqttPublishConfig,
    Inputs.ONE,
    Act(_action),
    repeatable=False,
    faults=_faults,
)
