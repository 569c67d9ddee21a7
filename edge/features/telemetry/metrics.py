"""The metrics of telemetry, read at each scrape."""

import contextlib
from collections.abc import Iterator

from msgspec import Struct
from prometheus_client.core import Metric

from edge.app.metrics import counter, gauge, histogram
from edge.features.telemetry.alarm_publisher import BUCKETS_S
from edge.features.telemetry.service import TelemetryService
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Latency
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store

_RULE_COUNTS = (
    ("triggered", "Findings raised by a rule."),
    ("rate_limited", "Findings not raised by a rule because of its cooldown, or once per job."),
)


class TelemetryMetric(Struct, frozen=True):
    """One metric; the samples have at most one label."""

    name: str
    meaning: str
    is_counter: bool
    samples: tuple[tuple[str, float], ...]
    label: str = ""


class TelemetryFigures(Struct, frozen=True):
    """All metrics of telemetry, and the histograms of the times to an alarm and to its confirmation by the broker."""

    metrics: tuple[TelemetryMetric, ...]
    latency: Latency
    confirmed: Latency


async def telemetry_metrics(service: TelemetryService, store: Store) -> list[Metric]:
    """Return all metrics of telemetry. Raises Unavailable."""
    figures = await read_figures(service, store)
    found = []
    for metric in figures.metrics:
        labels = (metric.label,) if metric.label else ()
        samples = [((value,) if metric.label else (), number) for value, number in metric.samples]
        found.append((counter if metric.is_counter else gauge)(metric.name, metric.meaning, labels, samples))
    for name, meaning, latency in (
        ("alarm_latency_seconds", "Time from the arrival of a batch to the commit of its alarms.", figures.latency),
        ("alarm_confirmed_seconds", "Time from a sample to the broker's confirmation of its alarm.", figures.confirmed),
    ):
        found.append(histogram(name, meaning, (), [((), latency)]))
    return found


async def read_figures(service: TelemetryService, store: Store) -> TelemetryFigures:
    """Read the figures of telemetry. Raises Unavailable."""
    counts, stream = await telemetry.read_counters(store), await telemetry.read_lengths(store)
    if service.volatile:
        # If the volatile store is unavailable, its entries are lost: no entry waits there.
        with contextlib.suppress(Unavailable):
            other = await telemetry.read_lengths(service.volatile)
            stream = telemetry.StreamLengths(
                stream.entries + other.entries, stream.lag + other.lag, stream.dead_letters
            )
    confirmed = service.publisher.latency if service.publisher else Latency(BUCKETS_S)
    return TelemetryFigures(tuple(_metrics(service, counts, stream)), service.processor.alarm_latency, confirmed)


def _metrics(
    service: TelemetryService, counts: dict[str, int], stream: telemetry.StreamLengths
) -> Iterator[TelemetryMetric]:
    for name, meaning in (
        ("processed", "Samples and occurrences that were evaluated."),
        ("dlq", "Batches that became dead letters."),
        ("refused", "Samples in the stream that could not be read."),
        ("sent", "Changes of alarms that were published."),
        ("failed", "Changes of alarms that the broker refused."),
    ):
        yield TelemetryMetric(f"telemetry_{name}", meaning, is_counter=True, samples=(("", counts.get(name, 0)),))
    for name, meaning in _RULE_COUNTS:
        prefix = f"rule:{name}:"
        found = tuple((text.removeprefix(prefix), count) for text, count in counts.items() if text.startswith(prefix))
        yield TelemetryMetric(f"rule_{name}", meaning, is_counter=True, samples=found, label="rule")
    withheld = counts.get("withheld", 0)
    meaning = "Alarms that a flood withheld."
    yield TelemetryMetric("alarms_withheld", meaning, is_counter=True, samples=(("", withheld),))
    dropped = service.queue.dropped
    meaning = "Samples, and messages with samples, that were dropped because they came too fast."
    yield TelemetryMetric("telemetry_dropped", meaning, is_counter=True, samples=(("", dropped),))
    meaning = "Samples that cannot be taken: their value, their type or their name."
    yield TelemetryMetric("telemetry_samples_refused", meaning, is_counter=True, samples=(("", service.queue.refused),))
    meaning = "Payloads and metrics of a source that are not samples."
    refused = tuple(service.queue.refused_of.items())
    yield TelemetryMetric("telemetry_source_refused", meaning, is_counter=True, samples=refused, label="source")
    written, evaluated = service.written_bytes, service.processor.evaluated
    meaning = "Bytes that samples and rules took in the append-only file, about."
    yield TelemetryMetric("telemetry_written_bytes", meaning, is_counter=True, samples=(("", written),))
    if history := service.history:
        for name, meaning, count in (
            ("telemetry_history_written", "Samples in the files of history.", history.written),
            (
                "telemetry_history_dropped",
                "Samples dropped because the disk refused them.",
                history.dropped,
            ),
        ):
            yield TelemetryMetric(name, meaning, is_counter=True, samples=(("", count),))
        meaning = "Bytes of the files of history after the last write."
        yield TelemetryMetric("telemetry_history_bytes", meaning, is_counter=False, samples=(("", history.bytes),))
    for name, meaning, value in (
        ("telemetry_stream_length", "Entries of the stream; near its limit in normal operation.", stream.entries),
        ("telemetry_dlq_length", "Batches among the dead letters.", stream.dead_letters),
        ("telemetry_consumer_lag", "Entries that are not evaluated yet: alert on this one.", stream.lag),
        ("telemetry_bytes_per_sample", "Bytes of the append-only file per sample.", written / max(1, evaluated)),
        ("telemetry_queue_length", "Samples that wait for the stream.", service.queue.waiting),
        ("alarms_standing", "Alarms that are not normal.", service.processor.alarms.standing),
        ("alarms_shelved", "Alarms that are shelved.", service.processor.alarms.shelved),
        ("alarms_raised_recently", "Alarms raised in the last ten minutes (ISA-18.2).", service.processor.alarms.rate),
    ):
        yield TelemetryMetric(name, meaning, is_counter=False, samples=(("", value),))
