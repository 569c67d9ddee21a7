"""Renders the metrics for Prometheus; values are read at each scrape and stored nowhere else."""

import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct
from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from edge import __version__
from edge.app.health import Health
from edge.foundation.errors import Unavailable
from edge.foundation.instant import now_ms
from edge.foundation.metric import MetricFamily, counter, gauge, histogram
from edge.links.http_server import Page
from edge.model.equipment_connection import ConnectionFault
from edge.model.job_state import TEXT, JobState
from edge.station.active_runs import Activity
from edge.station.equipment_watch import EquipmentWatch
from edge.store import gauges
from edge.store.bounds import BoundedCounts
from edge.store.client import Store
from edge.store.gauges import Gauges, ScopeGauges
from edge.store.server_check import NEARLY_FULL
from edge.store.store_state import StoreState

PATH = "/metrics"
_PREFIX = "microdcs_edge_"


class MetricSources(Struct, frozen=True):
    """The measured parts; `sessions` counts OPC UA sessions, None without a server."""

    gateway: str
    scopes: Sequence[str]
    store: Store
    health: Health
    equipment: EquipmentWatch
    activity: Activity
    sessions: Callable[[], int] | None = None
    further: Sequence[Callable[[], Awaitable[Iterable[MetricFamily]]]] = ()
    """Those of the features; each raises Unavailable without the store."""


async def page(sources: MetricSources) -> Page:
    """Return all metrics in the Prometheus text format 0.0.4; without the store, the metrics of this process."""
    found, further = None, list[MetricFamily]()
    with suppress(Unavailable):
        found = await gauges.read_gauges(sources.store, sources.scopes)
    for read in sources.further:
        with suppress(Unavailable):
            further += await read()
    families = [*map(rendered, (*_families(sources, found), *further)), *ProcessCollector(registry=None).collect()]
    return Page(CONTENT_TYPE_PLAIN_0_0_4, generate_latest(_CollectedMetrics(families)))


def rendered(metric: MetricFamily) -> Metric:
    """Return a metric as Prometheus knows it, with the prefix of the product."""
    name, labels = _PREFIX + metric.name, metric.labels
    if metric.kind == "histogram":
        family = HistogramMetricFamily(name, metric.meaning, labels=labels)
        for values, latency in metric.durations:
            buckets = [("+Inf" if math.isinf(bound) else str(bound), count) for bound, count in latency.cumulative()]
            family.add_metric(values, buckets, latency.total)
        return family
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    numbers = kind(name, metric.meaning, labels=labels)
    for values, number in metric.samples:
        numbers.add_metric(values, number)
    return numbers


class _CollectedMetrics(Collector):
    """Metrics collected already, independent of the registry of the process."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return the collected families."""
        return self._families


Row = tuple[Callable[..., MetricFamily], str, str, str | Callable[[Any], float | None]]
"""A family: its kind, its name, its meaning, and the member of an object that is its value; None: no sample."""

_OF_EQUIPMENT: Final[Sequence[Row]] = (
    (
        gauge,
        "equipment_last_seen_timestamp_seconds",
        "Last message, connection or disconnection.",
        lambda device: None if device.last_seen is None else device.last_seen / 1000,
    ),
    (gauge, "commands_outstanding", "Commands without an answer.", "outstanding"),
    (
        counter,
        "equipment_messages_ignored",
        "Late or repeated answers, and events that no recipe waited for.",
        "ignored",
    ),
    (counter, "equipment_messages_refused", "Messages of equipment that were refused.", "refused"),
    (counter, "outcomes_unknown", "Commands whose outcome could not be found.", "unknown"),
    (counter, "starts_repeated", "Starts that the equipment may have received before.", "repeated_starts"),
    (counter, "results_late", "Results that no command waited for.", "late"),
    (counter, "answers_unsolicited", "Answers of a flood that no command waited for.", "unsolicited"),
    (counter, "stops_declined", "Stops and resets that the equipment declined.", "declined_stops"),
    (counter, "traces_lost", "Curves and files of results that could not be stored.", "lost_traces"),
    (
        gauge,
        "stops_unconfirmed",
        "Stops, resets and releases without a confirmation: the tool may still be active.",
        "safing",
    ),
)
_OF_STORE: Final[Sequence[Row]] = (
    (gauge, "store_memory_bytes", "Memory used by the store.", "memory.used"),
    (gauge, "store_memory_limit_bytes", "Memory limit of the store; 0: no limit.", "memory.limit"),
    (gauge, "store_nearly_full", f"Whether {NEARLY_FULL:.0%} of its memory are used: 1 or 0.", "memory.is_nearly_full"),
    (gauge, "dead_letters", "Failed work kept for a decision.", "dead_letters"),
    (counter, "results_unconfirmed_removed", "Results removed before the MES confirmed them.", "removed_unconfirmed"),
    (counter, "messages_refused", "Messages refused since the store was created.", "refused"),
)
_OF_MARKS: Final[Sequence[Row]] = (
    (gauge, "marks", "Marks of repeated messages and removed jobs.", "count"),
    (gauge, "marks_limit", "Marks at which new orders are refused.", "limit"),
)
_OF_SCOPE: Final[Sequence[Row]] = (
    (gauge, "work_entries", "Pending work entries.", "work"),
    (gauge, "work_lag_seconds", "Age of the oldest pending work entry.", lambda scope: _age(scope.work_since)),
    (
        gauge,
        "publish_lag_seconds",
        "Age of the oldest change not yet published to the MES.",
        lambda scope: _age(scope.unpublished_since),
    ),
)
_OF_DATA_NODE: Final[Sequence[Row]] = (
    (
        gauge,
        "store_clock_difference_seconds",
        "What the clock of a data node is ahead of that of the gateway.",
        "clock_s",
    ),
    (gauge, "store_append_only", "Whether a data node keeps an append-only file: 1 or 0.", "has_aof"),
)
_OF_SENTINELS: Final[Sequence[Row]] = (
    (
        gauge,
        "store_primary_confirmed",
        "Whether a majority of the sentinels confirms the primary: 1 or 0.",
        lambda state: not state.fence.reason,
    ),
    (gauge, "store_sentinels", "Sentinels of the store.", lambda state: len(state.sentinels)),
    (gauge, "store_sentinels_answering", "Sentinels that answer.", "answering"),
)
_OF_REPLICA: Final[Sequence[Row]] = (
    (gauge, "store_replica_connected", "Whether a replica follows the primary: 1 or 0.", "is_linked"),
    (gauge, "store_replica_lag_bytes", "What a replica has not received yet.", "lag_bytes"),
    (gauge, "store_replica_lag_seconds", "Time since a replica confirmed what it has received.", "lag_s"),
)


def _rows(
    rows: Sequence[Row], labels: Sequence[str], objects: Iterable[tuple[Sequence[str], Any]]
) -> Iterator[MetricFamily]:
    """Yield the family of each row, with a sample for each object."""
    objects = list(objects)
    for family, name, meaning, member in rows:
        value = attrgetter(member) if isinstance(member, str) else member
        samples = [(label, number) for label, item in objects if (number := value(item)) is not None]
        yield family(name, meaning, labels, samples)


def _families(sources: MetricSources, stored: Gauges | None) -> Iterator[MetricFamily]:
    info = ((sources.gateway, __version__), 1)
    yield gauge("info", "Name and version of the gateway.", ("gateway", "version"), [info])
    yield from _activity_metrics(sources)
    yield from _equipment_metrics(sources)
    yield from _connection_metrics(sources)
    defects = [((task,), count) for task, count in sources.store.defects.counts.items()]
    yield counter("task_failures", "Defects of background tasks, which are retried.", ("task",), defects)
    yield gauge("store_up", "Whether the store answers: 1 or 0.", (), [((), stored is not None)])
    if (state := sources.health.servers.state) is not None:
        yield from server_metrics(state)
    yield histogram("commit_seconds", "Duration of commits to the store.", (), [((), sources.store.commits)])
    if stored is not None:
        yield from _rows(_OF_STORE, (), [((), stored)])
        yield from _bounded_metrics(sources.health.counts)
        yield from _scope_metrics(stored.scopes)


def server_metrics(state: StoreState) -> Iterator[MetricFamily]:
    """Yield the metrics of the servers of the store; those of replicas and sentinels behind Sentinel only."""
    replicas = [((replica.address,), replica) for replica in state.replicas]
    primary = state.primary
    yield from _rows(_OF_DATA_NODE, ("node",), [*([((primary.address,), primary)] if primary else ()), *replicas])
    if state.fence is None:
        return
    yield from _rows(_OF_SENTINELS, (), [((), state)])
    if primary is not None and primary.config_epoch is not None:
        epoch = [((primary.address,), primary.config_epoch)]
        yield gauge("store_config_epoch", "Number of the last failover, by the primary.", ("primary",), epoch)
    yield from _rows(_OF_REPLICA, ("replica",), replicas)


def _activity_metrics(sources: MetricSources) -> Iterator[MetricFamily]:
    activity = sources.activity
    takers = {
        type_id: watched_equipment.equipment.name
        for watched_equipment in sources.equipment.watched
        for type_id in watched_equipment.type_ids
    }
    commands: dict[tuple[str, str], float] = {}
    for (type_id, phase), count in activity.commands.items():
        label = (takers.get(type_id, ""), phase.value)
        commands[label] = commands.get(label, 0) + count
    ended = [((scope, outcome.value), count) for (scope, outcome), count in activity.ended.items()]
    steps = [((scope,), activity.steps[scope]) for scope in sources.scopes]
    yield counter("steps", "Activations of steps.", ("scope",), steps)
    yield counter("runs_ended", "Ended runs by outcome.", ("scope", "outcome"), ended)
    yield counter("commands", "Commands requested by decisions.", ("equipment", "phase"), commands.items())


def _equipment_metrics(sources: MetricSources) -> Iterator[MetricFamily]:
    devices = sources.equipment.health
    connected = [((device.name, device.kind), device.connected) for device in devices if device.connected is not None]
    meaning = "Whether it is connected: 1 or 0; absent until known."
    yield gauge("equipment_connected", meaning, ("equipment", "kind"), connected)
    disconnected = [
        ((device.name, device.connection.fault or ConnectionFault.OTHER), 1)
        for device in devices
        if device.connected is False
    ]
    meaning = "1 for equipment that is not connected, with the kind of the reason; absent while it is connected."
    yield gauge("equipment_disconnected", meaning, ("equipment", "fault"), disconnected)
    outcomes = [
        ((device.name, outcome), count)
        for device in devices
        for outcome, count in (("done", device.answered - device.failed), ("failed", device.failed))
    ]
    yield counter("command_answers", "Answers to commands.", ("equipment", "outcome"), outcomes)
    evaluations = [
        ((device.name, evaluation), count)
        for device in devices
        for evaluation, count in (("OK", device.ok), ("NotOK", device.not_ok))
    ]
    meaning = "Results by their evaluation, of equipment that reports one."
    yield counter("results", meaning, ("equipment", "evaluation"), evaluations)
    yield from _rows(_OF_EQUIPMENT, ("equipment",), [((device.name,), device) for device in devices])
    trips = [
        ((watched_equipment.equipment.name,), watched_equipment.stats.round_trips)
        for watched_equipment in sources.equipment.watched
    ]
    meaning = "Time from the decision to send a command to its answer."
    yield histogram("command_round_trip_seconds", meaning, ("equipment",), trips)


def _connection_metrics(sources: MetricSources) -> Iterator[MetricFamily]:
    sessions = [((name,), session.connected) for name, session in sources.health.sessions.items()]
    yield gauge("broker_connected", "Whether a session is connected to its broker: 1 or 0.", ("session",), sessions)
    refused = [((name,), len(session.refused())) for name, session in sources.health.sessions.items()]
    meaning = "Subscriptions that the broker of a session does not grant."
    yield gauge("broker_subscriptions_refused", meaning, ("session",), refused)
    if sources.sessions is not None:
        yield gauge("opcua_sessions", "Sessions of OPC UA clients.", (), [((), sources.sessions())])
    hanging = len(sources.store.heartbeat.stalled())
    yield gauge("tasks_hanging", "Critical tasks without progress.", (), [((), hanging)])


def _bounded_metrics(counts: BoundedCounts) -> Iterator[MetricFamily]:
    yield from _rows(_OF_MARKS, (), [((), counts.marks)])
    waiting = [((scope,), bounded_count.count) for scope, bounded_count in counts.undelivered.items()]
    yield gauge("results_undelivered", "Results kept beyond their time for the MES.", ("scope",), waiting)
    unconfirmed = [((scope,), bounded_count.count) for scope, bounded_count in counts.unconfirmed.items()]
    yield gauge("results_unconfirmed", "Results kept beyond their time, delivered or not.", ("scope",), unconfirmed)
    limits = [((scope,), bounded_count.limit) for scope, bounded_count in counts.undelivered.items()]
    yield gauge("results_undelivered_limit", "Results that are kept for the MES at most.", ("scope",), limits)


def _scope_metrics(scopes: Mapping[str, ScopeGauges]) -> Iterator[MetricFamily]:
    jobs = [
        ((scope, TEXT[state]), scope_gauges.open_jobs.get(state, 0))
        for scope, scope_gauges in scopes.items()
        for state in JobState
        if state not in {JobState.ENDED, JobState.ABORTED}
    ]
    jobs += [((scope, "EndState"), scope_gauges.ended_jobs) for scope, scope_gauges in scopes.items()]
    yield gauge("jobs", "Jobs in the store by state.", ("scope", "state"), jobs)
    yield from _rows(_OF_SCOPE, ("scope",), [((scope,), scope_gauges) for scope, scope_gauges in scopes.items()])


def _age(since: int | None) -> float:
    """Return the seconds since an instant; 0 without one."""
    return 0.0 if since is None else max(0, now_ms() - since) / 1000
