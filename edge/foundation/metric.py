"""Metrics as values, apart from the library that renders them: who counts does not import it."""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from edge.foundation.instant import Latency

Samples: TypeAlias = Iterable[tuple[Sequence[str], float]]
"""Label values and the sample value."""


class MetricFamily(Struct, frozen=True):
    """A family of samples; `name` is without the prefix of the product, and without that of its kind."""

    kind: Literal["gauge", "counter", "histogram"]
    name: str
    meaning: str
    labels: Sequence[str]
    samples: Sequence[tuple[Sequence[str], float]] = ()
    durations: Sequence[tuple[Sequence[str], Latency]] = ()
    """Those of a histogram, in place of samples."""


def gauge(name: str, meaning: str, labels: Sequence[str], samples: Samples) -> MetricFamily:
    """Return the samples of a value that rises and falls."""
    return MetricFamily("gauge", name, meaning, labels, tuple(samples))


def counter(name: str, meaning: str, labels: Sequence[str], samples: Samples) -> MetricFamily:
    """Return the samples of a value that only rises."""
    return MetricFamily("counter", name, meaning, labels, tuple(samples))


def histogram(
    name: str, meaning: str, labels: Sequence[str], durations: Iterable[tuple[Sequence[str], Latency]]
) -> MetricFamily:
    """Return the durations as a histogram."""
    return MetricFamily("histogram", name, meaning, labels, durations=tuple(durations))
