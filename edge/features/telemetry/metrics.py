"""The metrics of telemetry, read at each scrape."""

import contextlib
from collections.abc import Iterator, Mapping

from edge.features.telemetry.alarm_publisher import BUCKETS_S
from edge.features.telemetry.parts import TelemetryService
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Latency
from edge.foundation.metric import MetricFamily, Samples, counter, gauge, histogram
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store


async def telemetry_metrics(service: TelemetryService, store: Store) -> list[MetricFamily]:
    """Return all metrics of telemetry. Raises Unavailable."""
    counts, stream = await telemetry.read_counters(store), await telemetry.read_lengths(store)
    if service.volatile:
        # If the volatile store is unavailable, its entries are lost: no entry waits there.
        with contextlib.suppress(Unavailable):
            other = await telemetry.read_lengths(service.volatile)
            stream = telemetry.StreamLengths(
                stream.entries + other.entries, stream.lag + other.lag, stream.dead_letters
            )
    return [*_of_store(counts, stream), *_of_process(service)]


def _of_store(counts: Mapping[str, int], stream: telemetry.StreamLengths) -> Iterator[MetricFamily]:
    for name, meaning in (
        ("processed", "Samples and occurrences that were evaluated."),
        ("dlq", "Batches that became dead letters."),
        ("refused", "Samples in the stream that could not be read."),
        ("sent", "Changes of alarms that were published."),
        ("failed", "Changes of alarms that the broker refused."),
    ):
        yield counter(f"telemetry_{name}", meaning, (), _one(counts.get(name, 0)))
    yield counter("alarms_withheld", "Alarms that a flood withheld.", (), _one(counts.get("withheld", 0)))
    for name, meaning in (
        ("triggered", "Findings raised by a rule."),
        ("rate_limited", "Findings not raised by a rule because of its cooldown, or once per job."),
    ):
        prefix = f"rule:{name}:"
        by_rule = [((text.removeprefix(prefix),), count) for text, count in counts.items() if text.startswith(prefix)]
        yield counter(f"rule_{name}", meaning, ("rule",), by_rule)
    for name, meaning, value in (
        ("telemetry_stream_length", "Entries of the stream; near its limit in normal operation.", stream.entries),
        ("telemetry_dlq_length", "Batches among the dead letters.", stream.dead_letters),
        ("telemetry_consumer_lag", "Entries that are not evaluated yet: alert on this one.", stream.lag),
    ):
        yield gauge(name, meaning, (), _one(value))


def _of_process(service: TelemetryService) -> Iterator[MetricFamily]:
    queue, processor, written = service.queue, service.processor, service.written_bytes
    for name, meaning, count in (
        ("dropped", "Samples, and messages with samples, that were dropped because they came too fast.", queue.dropped),
        ("samples_refused", "Samples that cannot be taken: their value, their type or their name.", queue.refused),
        ("written_bytes", "Bytes that samples and rules took in the append-only file, about.", written),
    ):
        yield counter(f"telemetry_{name}", meaning, (), _one(count))
    of_sources = [((source,), count) for source, count in queue.refused_of.items()]
    meaning = "Payloads and metrics of a source that are not samples."
    yield counter("telemetry_source_refused", meaning, ("source",), of_sources)
    if history := service.history:
        yield counter("telemetry_history_written", "Samples in the files of history.", (), _one(history.written))
        meaning = "Samples dropped because the disk refused them."
        yield counter("telemetry_history_dropped", meaning, (), _one(history.dropped))
        meaning = "Bytes of the files of history after the last write."
        yield gauge("telemetry_history_bytes", meaning, (), _one(history.bytes))
    per_sample = written / max(1, processor.evaluated)
    for name, meaning, value in (
        ("telemetry_bytes_per_sample", "Bytes of the append-only file per sample.", per_sample),
        ("telemetry_queue_length", "Samples that wait for the stream.", queue.waiting),
        ("alarms_standing", "Alarms that are not normal.", processor.alarms.standing),
        ("alarms_shelved", "Alarms that are shelved.", processor.alarms.shelved),
        ("alarms_raised_recently", "Alarms raised in the last ten minutes (ISA-18.2).", processor.alarms.rate),
    ):
        yield gauge(name, meaning, (), _one(value))
    confirmed = service.publisher.latency if service.publisher else Latency(BUCKETS_S)
    for name, meaning, latency in (
        ("latency", "Time from the arrival of a batch to the commit of its alarms.", processor.alarm_latency),
        ("confirmed", "Time from a sample to the broker's confirmation of its alarm.", confirmed),
    ):
        yield histogram(f"alarm_{name}_seconds", meaning, (), [((), latency)])


def _one(value: float) -> Samples:
    return (((), value),)
