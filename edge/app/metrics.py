"""Renders the metrics for Prometheus; values are read at each scrape and stored nowhere else."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec import Struct
from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from edge import __version__
from edge.app.health import Health
from edge.app.metric_families import counter, gauge, histogram
from edge.app.store_metrics import gauges_of
from edge.foundation.errors import Unavailable
from edge.foundation.instant import now_ms
from edge.links.http_page import Page
from edge.model.equipment_connection import ConnectionFault
from edge.model.equipment_health import EquipmentHealth
from edge.model.job_state import TEXT, JobState
from edge.station.active_runs import Activity
from edge.station.equipment_watch import EquipmentWatch
from edge.store import gauges
from edge.store.bounds import BoundedCounts
from edge.store.client import Store
from edge.store.gauges import Gauges
from edge.store.server_check import NEARLY_FULL

PATH = "/metrics"


class MetricSources(Struct, frozen=True):
    """The measured parts; `sessions` counts OPC UA sessions, None without a server."""

    gateway: str
    scopes: Sequence[str]
    store: Store
    health: Health
    equipment: EquipmentWatch
    activity: Activity
    sessions: Callable[[], int] | None = None
    further: Sequence[Callable[[], Awaitable[Iterable[Metric]]]] = ()
    """Those of the features; each raises Unavailable without the store."""


async def page(sources: MetricSources) -> Page:
    """Return all metrics in the Prometheus text format 0.0.4; without the store, the metrics of this process."""
    found, further = None, list[Metric]()
    with suppress(Unavailable):
        found = await gauges.read_gauges(sources.store, sources.scopes)
    for read in sources.further:
        with suppress(Unavailable):
            further += await read()
    return Page(CONTENT_TYPE_PLAIN_0_0_4, generate_latest(_CollectedMetrics((*_families(sources, found), *further))))


class _CollectedMetrics(Collector):
    """Metrics collected already, independent of the registry of the process."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return the collected families."""
        return self._families


def _families(sources: MetricSources, found: Gauges | None) -> Iterator[Metric]:
    info = ((sources.gateway, __version__), 1)
    yield gauge("info", "Name and version of the gateway.", ("gateway", "version"), [info])
    yield from _activity_metrics(sources)
    yield from _equipment_metrics(sources)
    yield from _connection_metrics(sources)
    defects = [((task,), count) for task, count in sources.store.defects.counts.items()]
    yield counter("task_failures", "Defects of background tasks, which are retried.", ("task",), defects)
    yield gauge("store_up", "Whether the store answers: 1 or 0.", (), [((), found is not None)])
    if (state := sources.health.servers.state) is not None:
        for store_gauge in gauges_of(state):
            labels = (store_gauge.label,) if store_gauge.label else ()
            samples = [((value,) if store_gauge.label else (), number) for value, number in store_gauge.samples]
            yield gauge(store_gauge.name, store_gauge.meaning, labels, samples)
    yield histogram("commit_seconds", "Duration of commits to the store.", (), [((), sources.store.commits)])
    if found is not None:
        yield from _store_metrics(found)
        yield from _bounded_metrics(sources.health.counts)
        yield from _scope_metrics(found, now_ms())
    yield from ProcessCollector(registry=None).collect()


def _activity_metrics(sources: MetricSources) -> Iterator[Metric]:
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


def _equipment_metrics(sources: MetricSources) -> Iterator[Metric]:
    health = sources.equipment.health
    one = ("equipment",)
    connected = [((device.name, device.kind), device.connected) for device in health if device.connected is not None]
    seen = [((device.name,), device.last_seen / 1000) for device in health if device.last_seen is not None]
    outcomes = [
        ((device.name, outcome), count)
        for device in health
        for outcome, count in (("done", device.answered - device.failed), ("failed", device.failed))
    ]
    trips = [
        ((watched_equipment.equipment.name,), watched_equipment.stats.round_trips)
        for watched_equipment in sources.equipment.watched
    ]
    yield gauge(
        "equipment_connected",
        "Whether it is connected: 1 or 0; absent until known.",
        ("equipment", "kind"),
        connected,
    )
    disconnected = [
        ((device.name, device.connection.fault or ConnectionFault.OTHER), 1)
        for device in health
        if device.connected is False
    ]
    meaning = "1 for equipment that is not connected, with the kind of the reason; absent while it is connected."
    yield gauge("equipment_disconnected", meaning, ("equipment", "fault"), disconnected)
    yield gauge("equipment_last_seen_timestamp_seconds", "Last message, connection or disconnection.", one, seen)
    yield gauge(
        "commands_outstanding",
        "Commands without an answer.",
        one,
        [((device.name,), device.outstanding) for device in health],
    )
    yield counter("command_answers", "Answers to commands.", ("equipment", "outcome"), outcomes)
    yield counter(
        "equipment_messages_ignored",
        "Late or repeated answers, and events that no recipe waited for.",
        one,
        [((device.name,), device.ignored) for device in health],
    )
    yield counter(
        "equipment_messages_refused",
        "Messages of equipment that were refused.",
        one,
        [((device.name,), device.refused) for device in health],
    )
    yield from _safety_metrics(health)
    yield histogram("command_round_trip_seconds", "Time from the decision to send a command to its answer.", one, trips)


def _safety_metrics(health: Sequence[EquipmentHealth]) -> Iterator[Metric]:
    """Yield the metrics of equipment results and stops, including those that need an operator."""
    one = ("equipment",)
    evaluations = [
        ((device.name, evaluation), count)
        for device in health
        for evaluation, count in (("OK", device.ok), ("NotOK", device.not_ok))
    ]
    meaning = "Results by their evaluation, of equipment that reports one."
    yield counter("results", meaning, ("equipment", "evaluation"), evaluations)
    unknown = [((device.name,), device.unknown) for device in health]
    yield counter("outcomes_unknown", "Commands whose outcome could not be found.", one, unknown)
    repeated = [((device.name,), device.repeated_starts) for device in health]
    yield counter("starts_repeated", "Starts that the equipment may have received before.", one, repeated)
    late = [((device.name,), device.late) for device in health]
    yield counter("results_late", "Results that no command waited for.", one, late)
    unsolicited = [((device.name,), device.unsolicited) for device in health]
    yield counter("answers_unsolicited", "Answers of a flood that no command waited for.", one, unsolicited)
    declined = [((device.name,), device.declined_stops) for device in health]
    yield counter("stops_declined", "Stops and resets that the equipment declined.", one, declined)
    lost = [((device.name,), device.lost_traces) for device in health]
    yield counter("traces_lost", "Curves and files of results that could not be stored.", one, lost)
    unconfirmed = [((device.name,), device.safing) for device in health]
    meaning = "Stops, resets and releases without a confirmation: the tool may still be active."
    yield gauge("stops_unconfirmed", meaning, one, unconfirmed)


def _connection_metrics(sources: MetricSources) -> Iterator[Metric]:
    sessions = [((name,), session.connected) for name, session in sources.health.sessions.items()]
    yield gauge("broker_connected", "Whether a session is connected to its broker: 1 or 0.", ("session",), sessions)
    refused = [((name,), len(session.refused())) for name, session in sources.health.sessions.items()]
    meaning = "Subscriptions that the broker of a session does not grant."
    yield gauge("broker_subscriptions_refused", meaning, ("session",), refused)
    if sources.sessions is not None:
        yield gauge("opcua_sessions", "Sessions of OPC UA clients.", (), [((), sources.sessions())])
    hanging = len(sources.store.heartbeat.stalled())
    yield gauge("tasks_hanging", "Critical tasks without progress.", (), [((), hanging)])


def _store_metrics(found: Gauges) -> Iterator[Metric]:
    memory = found.memory
    yield gauge("store_memory_bytes", "Memory used by the store.", (), [((), memory.used)])
    yield gauge("store_memory_limit_bytes", "Memory limit of the store; 0: no limit.", (), [((), memory.limit)])
    nearly = f"Whether {NEARLY_FULL:.0%} of its memory are used: 1 or 0."
    yield gauge("store_nearly_full", nearly, (), [((), memory.is_nearly_full)])
    yield gauge("dead_letters", "Failed work kept for a decision.", (), [((), found.dead_letters)])
    removed = [((), found.removed_unconfirmed)]
    yield counter("results_unconfirmed_removed", "Results removed before the MES confirmed them.", (), removed)
    yield counter("messages_refused", "Messages refused since the store was created.", (), [((), found.refused)])


def _bounded_metrics(counts: BoundedCounts) -> Iterator[Metric]:
    marks = counts.marks
    yield gauge("marks", "Marks of repeated messages and removed jobs.", (), [((), marks.count)])
    yield gauge("marks_limit", "Marks at which new orders are refused.", (), [((), marks.limit)])
    waiting = [((scope,), bounded_count.count) for scope, bounded_count in counts.undelivered.items()]
    yield gauge("results_undelivered", "Results kept beyond their time for the MES.", ("scope",), waiting)
    unconfirmed = [((scope,), bounded_count.count) for scope, bounded_count in counts.unconfirmed.items()]
    yield gauge("results_unconfirmed", "Results kept beyond their time, delivered or not.", ("scope",), unconfirmed)
    limits = [((scope,), bounded_count.limit) for scope, bounded_count in counts.undelivered.items()]
    yield gauge("results_undelivered_limit", "Results that are kept for the MES at most.", ("scope",), limits)


def _scope_metrics(found: Gauges, now: int) -> Iterator[Metric]:
    def age(since: int | None) -> float:
        return 0.0 if since is None else max(0, now - since) / 1000

    jobs = [
        ((scope, TEXT[state]), scope_gauges.open_jobs.get(state, 0))
        for scope, scope_gauges in found.scopes.items()
        for state in JobState
        if state not in {JobState.ENDED, JobState.ABORTED}
    ]
    jobs += [((scope, "EndState"), scope_gauges.ended_jobs) for scope, scope_gauges in found.scopes.items()]
    one = ("scope",)
    yield gauge("jobs", "Jobs in the store by state.", ("scope", "state"), jobs)
    work = [((scope,), scope_gauges.work) for scope, scope_gauges in found.scopes.items()]
    yield gauge("work_entries", "Pending work entries.", one, work)
    waits = [((scope,), age(scope_gauges.work_since)) for scope, scope_gauges in found.scopes.items()]
    yield gauge("work_lag_seconds", "Age of the oldest pending work entry.", one, waits)
    unpublished = [((scope,), age(scope_gauges.unpublished_since)) for scope, scope_gauges in found.scopes.items()]
    yield gauge("publish_lag_seconds", "Age of the oldest change not yet published to the MES.", one, unpublished)
