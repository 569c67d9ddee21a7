"""The metrics of flows."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from edge.app.metrics import counter, histogram
from edge.features.flows.engine import FlowStats


def flow_metrics(flows: FlowStats) -> Iterator[Metric]:
    """Yield what is counted of cycles."""
    cycles = [((status.value,), count) for status, count in flows.cycles.items()]
    yield counter("flow_cycles", "Ended cycles of flows.", ("outcome",), cycles)
    yield counter("flow_cycles_missed", "Cycles that did not run in time.", (), [((), flows.missed)])
    lateness = "Time from the instant at which a cycle is due to its begin."
    yield histogram("flow_cycle_lateness_seconds", lateness, (), [((), flows.lateness)])
    yield histogram("flow_cycle_duration_seconds", "Duration of the cycles.", (), [((), flows.duration)])
