"""The telemetry metrics match the values of the store and of the process."""

from pathlib import Path

from edge.features.telemetry.definitions import RuleUpdates
from edge.features.telemetry.interest import RuleInterest
from edge.features.telemetry.job_samples import JobSamples
from edge.features.telemetry.metrics import telemetry_metrics
from edge.features.telemetry.parts import TelemetryService
from edge.features.telemetry.processor import RuleProcessor
from edge.features.telemetry.sample_queue import SampleQueue
from edge.features.telemetry.trends import TrendMemory, Trends
from edge.ports.tag import TagDefinitions
from edge.store.client import Store
from tests.features.telemetry.plant import HOT, TelemetryClock, append, rules_of
from tests.features.telemetry.test_processor import temp


async def test_telemetry_metrics_are_read_from_store_and_process(store: Store) -> None:
    clock, rules = TelemetryClock(), rules_of(HOT)
    service = TelemetryService(
        SampleQueue(store, clock),
        RuleProcessor(store, rules, clock),
        RuleUpdates(store, rules, print),
        RuleInterest(rules),
        JobSamples(store.keys, RuleInterest(rules), {}, 10),
        (),
        TagDefinitions(),
        store,
        10,
        Trends(store, TrendMemory(), lambda: rules, TagDefinitions(), None, Path("unused")),
    )
    await append(store, temp(0, 1))
    await store.execute("HSET", store.keys.telemetry_counters(), "rule:triggered:hot", "3", "sent", "2")
    service.queue.put(temp(1, 2))
    found = {metric.name: metric.samples for metric in await telemetry_metrics(service, store)}
    assert found["rule_triggered"] == ((("hot",), 3),)
    assert found["telemetry_sent"] == (((), 2),)
    assert found["telemetry_stream_length"] == (((), 1),)
    assert found["telemetry_queue_length"] == (((), 1),)
