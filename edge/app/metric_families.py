"""Families of metrics in the form of Prometheus, with the prefix of the product."""

from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from edge.foundation.instant import Latency

_PREFIX = "microdcs_edge_"

Samples = Iterable[tuple[Sequence[str], float]]
"""Label values and the sample value."""


def gauge(name: str, meaning: str, labels: Sequence[str], samples: Samples) -> Metric:
    """Return the samples of a value that rises and falls; the name without the prefix of the product."""
    family = GaugeMetricFamily(_PREFIX + name, meaning, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def counter(name: str, meaning: str, labels: Sequence[str], samples: Samples) -> Metric:
    """Return the samples of a value that only rises."""
    family = CounterMetricFamily(_PREFIX + name, meaning, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def histogram(
    name: str, meaning: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], Latency]]
) -> Metric:
    """Return the durations as a histogram."""
    family = HistogramMetricFamily(_PREFIX + name, meaning, labels=labels)
    for values, latency in samples:
        buckets = [("+Inf" if bound == float("inf") else str(bound), count) for bound, count in latency.cumulative()]
        family.add_metric(values, buckets, latency.total)
    return family
