"""The metrics of the edge node."""

from prometheus_client.core import Metric

from edge.app.metrics import counter, gauge
from edge.features.sparkplug.session import NodeStats


def node_metrics(stats: NodeStats) -> list[Metric]:
    """Return what the edge node has done since the start of the gateway."""
    return [
        gauge(
            "sparkplug_born",
            "Whether the edge node of Sparkplug is born at this gateway: 1 or 0.",
            (),
            [((), stats.is_born)],
        ),
        counter("sparkplug_births", "Births of the edge node of Sparkplug.", (), [((), stats.births)]),
        counter(
            "sparkplug_messages", "Messages that the edge node of Sparkplug published.", (), [((), stats.messages)]
        ),
        counter(
            "sparkplug_commands_refused", "Commands of Sparkplug hosts that were refused.", (), [((), stats.refused)]
        ),
    ]
