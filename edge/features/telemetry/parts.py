"""Opens the parts of telemetry: the queue, the processor, the mirrored sets, and the actions of alarms."""

import contextlib
import pkgutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from edge.app.feature_ports import MqttSource
from edge.app.parts import GatewayParts, Works
from edge.features.telemetry.alarm_keeper import AlarmSuppression, raise_alarm
from edge.features.telemetry.alarm_publisher import AlarmPublisher, follow_actions
from edge.features.telemetry.built_in_rules import with_built_in
from edge.features.telemetry.definitions import RuleUpdates, TagUpdates, read_definitions, read_rules
from edge.features.telemetry.gateway_tags import GatewayTags
from edge.features.telemetry.interest import RuleInterest
from edge.features.telemetry.job_samples import JobSamples
from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.processor import RuleProcessor
from edge.features.telemetry.sample_queue import QueueLimits, SampleQueue
from edge.features.telemetry.sample_store import open_volatile
from edge.features.telemetry.settings import MirrorSettings, TelemetrySettings
from edge.features.telemetry.sources.open_sources import mqtt_sources_of_others
from edge.features.telemetry.trends import TrendMemory, Trends
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.foundation.ticks import Slices, next_tick
from edge.links.mqtt import MqttSession
from edge.model.job_state import has_ended
from edge.northbound.topics import Topics
from edge.ports.alarm import Alarm, AlarmCause
from edge.ports.sample_lines import Occurrence
from edge.ports.sample_value import JOB_ENDED
from edge.ports.tag import TagDefinitions
from edge.station.settings import SettingsListener, follow_settings
from edge.store import jobs
from edge.store.background import Defects, restart_on_defect, restart_on_outage
from edge.store.client import Store

if TYPE_CHECKING:
    from edge.features.telemetry.history.writer import HistoryWriter

_RECONCILE_S = 10.0


class TelemetryService(Struct):
    """The parts of telemetry that other modules read."""

    queue: SampleQueue
    processor: RuleProcessor
    updates: RuleUpdates
    interest: RuleInterest
    job_samples: JobSamples
    of_settings: Sequence[SettingsListener]
    """What is called after each change of settings."""
    tags: TagDefinitions
    store: Store
    stream_length: int
    trends: Trends
    mqtt_sources: Sequence[MqttSource] = ()
    own_rules: int = 0
    """The number of rules without the built-in ones."""
    publisher: AlarmPublisher | None = None
    history: "HistoryWriter | None" = None
    volatile: Store | None = None

    async def raise_alarm(self, cause: AlarmCause) -> Alarm | None:
        """Raise an alarm and return it; None when a flood of alarms withheld it. Raises Unavailable."""
        return await raise_alarm(self.store, cause, now_ms())

    @property
    def written_bytes(self) -> int:
        """Return about how many bytes telemetry wrote to the append-only file of the durable store since the start."""
        processor = self.processor
        sampled = 0 if self.volatile else self.queue.written_bytes
        decided = processor.written_bytes + processor.alarms.written_bytes + processor.tags.written_bytes
        return sampled + decided + self.job_samples.written_bytes


async def open_parts(stack: contextlib.AsyncExitStack, core: GatewayParts, works: Works) -> TelemetryService:
    """Open the queue, the processor and the job actions. Raises SettingsError with every fault of the rules."""
    settings = core.settings.section(TelemetrySettings)
    own = read_rules(settings.rules)
    interest = RuleInterest(with_built_in(own), record_all=settings.record == "all")
    limits = QueueLimits(stream_length=settings.stream_length)
    volatile = await stack.enter_async_context(open_volatile(core.settings, core.store.consumer))
    tags = read_definitions(settings.tags)
    # The store of a gateway and that of volatile samples fail apart: the log names which one.
    task = "volatile sample queue" if volatile else "samples"
    # Jobs come first: while they make decisions telemetry rests after each millisecond.
    slices = Slices(core.runs.is_busy)
    queue = SampleQueue(
        volatile or core.store, now_ms, limits, interest.wants, tags.judge, task, interest.raises_alarms, slices
    )
    processor = RuleProcessor(
        core.store,
        with_built_in(own),
        now_ms,
        volatile=volatile,
        flood_limit=settings.flood_alarms,
        slices=slices,
    )
    history = await open_history(stack, settings, processor, core.store.defects)
    updates = _rule_updates(core, own, interest, processor)
    of_settings = (updates.refresh, TagUpdates(core.store, tags).refresh)
    await _follow_settings(stack, core, of_settings)
    equipment_of = {type_id: equipment.name for type_id, equipment in works.dispatch.routes.items()}
    samples = JobSamples(core.store.keys, interest, equipment_of, settings.stream_length, tags)
    core.runs.additions.append(samples.commit_for)
    await _keep_running(stack, core, works, processor, queue)
    if core.settings.named(MirrorSettings):
        # redis-py is imported only where it is used.
        await pkgutil.resolve_name("edge.features.telemetry.mirror:open_mirrors")(stack, core, interest)
    return TelemetryService(
        queue,
        processor,
        updates,
        interest,
        samples,
        of_settings,
        tags,
        core.store,
        settings.stream_length,
        _open_trends(core, processor, tags, history),
        mqtt_sources_of_others(core, queue),
        own_rules=len(own),
        history=history,
        volatile=volatile,
    )


async def _keep_running(
    stack: contextlib.AsyncExitStack, core: GatewayParts, works: Works, processor: RuleProcessor, queue: SampleQueue
) -> None:
    """Evaluate the rules where this gateway has to, queue samples, and sample the gateway itself."""
    # Only one instance on the store evaluates the rules: the publisher of the first scope.
    gate = core.instance.publisher_gates[core.scopes[0]]
    suppression = AlarmSuppression(core.store, core.mode, core.settings.maintenance.suppress_alarms, now_ms)
    tasks = (
        ("rules", processor.run),
        ("alarm actions", lambda: follow_actions(core.store, works.jobs, core.source)),
        ("alarm suppression", suppression.run),
        ("ended jobs", lambda: _reconcile_jobs(core, processor, queue)),
    )
    for name, work in tasks:
        await core.keep_running_while(stack, gate, name, work)
    await core.keep_running(stack, "samples", queue.run)
    gateway_tags = GatewayTags(core, queue.put, now_ms, servers=core.health.servers.tags)
    await core.keep_running(stack, "gateway tags", gateway_tags.run)


async def open_history(
    stack: contextlib.AsyncExitStack, settings: TelemetrySettings, processor: RuleProcessor, defects: Defects
) -> "HistoryWriter | None":
    """Write the evaluated samples to files; None when no history is configured. Raises SettingsError."""
    if not settings.history_days:
        return None
    try:
        # The library is an extra of the package.
        from edge.features.telemetry.history.writer import HistoryLimits, HistoryWriter  # noqa: PLC0415
    except ImportError as error:
        problem = Text.of("telemetry.history_days: needs a library that is not installed: {reason}", reason=error)
        raise SettingsError([problem], "Install it: pip install 'microdcs-edge[history]'") from None
    limits = HistoryLimits(settings.history_days, settings.history_bytes, settings.history_interval)
    writer = HistoryWriter(Path(settings.history_directory), limits)
    processor.sample_listeners.append(writer.append)
    work = restart_on_defect(defects, "history", writer.run)
    await stack.enter_async_context(background_task(work, "history"))
    return writer


def _open_trends(
    core: GatewayParts, processor: RuleProcessor, tags: TagDefinitions, history: "HistoryWriter | None"
) -> Trends:
    """Return the trends of tags; they take no samples until a person looks at one."""
    memory = TrendMemory()
    processor.sample_listeners.append(memory.take)
    directory = Path(core.settings.section(TelemetrySettings).history_directory)
    return Trends(core.store, memory, lambda: processor.rules, tags, history, directory)


async def _follow_settings(
    stack: contextlib.AsyncExitStack, core: GatewayParts, listeners: Sequence[SettingsListener]
) -> None:
    """Load rules and definitions of tags, and again at each change, whichever process on the store made it."""
    # If the store is unavailable, they are loaded later.
    with contextlib.suppress(Unavailable):
        for listener in listeners:
            await listener("")
    follow = partial(follow_settings, core.store, listeners)
    await core.keep_running(stack, "rules and tags", partial(restart_on_outage, "rules and tags", follow))


def _rule_updates(
    core: GatewayParts, own: Sequence[Rule], interest: RuleInterest, processor: RuleProcessor
) -> RuleUpdates:
    def use_rules(rules: tuple[Rule, ...]) -> None:
        interest.use_rules(rules)
        processor.use_rules(rules)

    return RuleUpdates(core.store, own, use_rules)


async def publish_alarms(
    stack: contextlib.AsyncExitStack, core: GatewayParts, telemetry: TelemetryService, session: MqttSession
) -> None:
    """Publish alarms to the MES."""
    topics = Topics(core.settings.northbound.topic_prefix, core.scopes[0])
    publisher = telemetry.publisher = AlarmPublisher(
        core.store, session, core.source, topics, now_ms, version=core.settings.northbound.event_version
    )
    gate = core.instance.publisher_gates[core.scopes[0]]
    await core.keep_running_while(stack, gate, "alarms", publisher.run)


async def _reconcile_jobs(core: GatewayParts, processor: RuleProcessor, queue: SampleQueue) -> None:
    """Report the end of jobs that another process ended, for example a command of an operator."""
    while True:
        await next_tick(_RECONCILE_S)
        with contextlib.suppress(Unavailable):
            for job_id in processor.running_jobs:
                job = await jobs.load(core.store, job_id)
                if job is None or has_ended(job.status):
                    queue.put(Occurrence(now_ms(), JOB_ENDED, job_id, None))
