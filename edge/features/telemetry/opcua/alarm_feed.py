"""Adds the alarms of the store to a server as conditions, and publishes every change of an alarm."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import structlog
from asyncua import ua
from msgspec import Struct, field
from msgspec.structs import replace

from edge.app.parts import GatewayParts
from edge.features.telemetry.alarm_requests import request_change
from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.opcua.condition_methods import AlarmRequests, ConditionMethods
from edge.features.telemetry.opcua.condition_view import (
    ConditionKind,
    ConditionPlace,
    FollowedAlarm,
    follow_change,
    is_of_gateway,
    kind_of,
    tag_of_alarm,
)
from edge.features.telemetry.opcua.conditions import MAX_NORMAL, Conditions
from edge.features.telemetry.opcua.history import CONTINUATION_POINTS, History, add_capabilities
from edge.features.telemetry.opcua.history_configuration import add_default_configuration, add_event_filters
from edge.features.telemetry.opcua.history_events import AlarmEvents, EventHistory, JobEvents
from edge.features.telemetry.opcua.tag_nodes import TagNodes, tag_node_id
from edge.features.telemetry.parts import TelemetryService
from edge.features.telemetry.rules.alarm import AlarmEvent
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock, now_ms
from edge.foundation.task_group import background_task
from edge.foundation.ticks import next_tick
from edge.opcua.time_slices import Pacer
from edge.ports.alarm import Alarm, AlarmNotice
from edge.ports.tag import TagDefinitions
from edge.store import jobs
from edge.store import kept_alarms as alarms
from edge.store import stream_of_samples as tags
from edge.store.background import Isolated, restart_on_outage
from edge.store.client import Store
from edge.store.instance_leases import load_identity
from edge.store.kept_alarms import AlarmChange
from edge.store.reads import BEGINNING
from edge.uaserver.condition_space import ConditionRefresher
from edge.uaserver.gateway_object import GATEWAY_NAME
from edge.uaserver.namespaces import alarms_uri
from edge.uaserver.parts import NewServer, ServerPart

if TYPE_CHECKING:
    from edge.features.telemetry.opcua.tag_history import TagHistory


class AlarmSettings(Struct, frozen=True):
    """What the conditions need of the gateway: the identity of its store, the requests to alarms, and the time."""

    store_id: str
    request: AlarmRequests
    clock: Clock
    store: Store
    history: "TagHistory | None" = None
    """The history of tags; None when none is kept."""
    max_normal: int = MAX_NORMAL
    definitions: TagDefinitions = field(default_factory=TagDefinitions)
    """The definitions of tags; they change with the settings of the station."""


class AlarmNodes(Struct, frozen=True):
    """The conditions, the places where they can be by the name of the source, and ConditionRefresh."""

    conditions: Conditions
    places: Mapping[str, ConditionPlace]
    refresher: ConditionRefresher
    tags: TagNodes


async def add_alarms(new: NewServer, settings: AlarmSettings) -> AlarmNodes:
    """Add conditions below the machines and the gateway of a server."""
    core, sources = new.core, new.sources
    conditions = Conditions(core, settings.max_normal)
    methods = ConditionMethods(conditions, settings.request, settings.clock)
    await new.conditions.add(alarms_uri(settings.store_id), methods.source)
    places = {name: conditions.add_source(name, node_id) for name, node_id in sources.items()}
    tags = conditions.tags = TagNodes(
        core.aspace[sources[GATEWAY_NAME]], settings.definitions, has_history=settings.history is not None
    )
    core.read_checks.append(tags.may_read)
    of_alarms = AlarmEvents(settings.store, conditions, places, GATEWAY_NAME)
    of_jobs = [JobEvents(settings.store, scope, event) for scope, event in new.job_events.items()]
    results = [job_event_publisher.enable_history() for job_event_publisher in new.job_events.values()]
    add_event_filters(core, results, sources.values())
    if settings.history is not None:
        add_default_configuration(core)
    events = EventHistory((of_alarms, *of_jobs), core.aspace)
    core.history = History(core.aspace.__contains__, events, settings.history)
    add_capabilities(core, has_values=settings.history is not None)
    most = ua.DataValue(ua.Variant(CONTINUATION_POINTS, ua.VariantType.UInt16))
    await core.write_attribute_value(
        ua.NodeId(ua.ObjectIds.Server_ServerCapabilities_MaxHistoryContinuationPoints), most
    )
    return AlarmNodes(conditions, places, new.conditions.refresher, tags)


logger = structlog.get_logger(__name__)

_NEWEST: Final = 1_000
"""Changes that are read at the start: they show alarms that are normal again, and severities before the last."""
_TAGS_S: Final = 5.0
_MAX_JOBS: Final = 1_000
"""Jobs whose scope is remembered."""


async def add_alarms_of_store(core: GatewayParts, new: NewServer) -> ServerPart:
    """Add the conditions and the history of a gateway to a server that is made. Raises Unavailable."""
    telemetry: TelemetryService = core.ports["telemetry"]
    store = core.store

    async def request(alarm_id: str, event: AlarmEvent, normal: Alarm | None) -> AlarmNotice:
        return await request_change(store, alarm_id, event, now_ms, normal=normal)

    history = None
    if telemetry.history is not None:
        # Imported only with history: its library is an extra of the package.
        from edge.features.telemetry.opcua.tag_history import TagHistory  # noqa: PLC0415

        history = TagHistory(telemetry.history.directory, telemetry.history, telemetry.tags)
    identity = await load_identity(store)
    nodes = await add_alarms(new, AlarmSettings(identity, request, now_ms, store, history, definitions=telemetry.tags))

    async def show(_server: object) -> None:
        await show_alarms(store, nodes, core.scopes, lambda: telemetry.updates.rules)

    return ServerPart(works={"OPC UA alarms": show})


async def show_alarms(
    store: Store, nodes: AlarmNodes, scopes: Sequence[str], rules: Callable[[], Iterable[Rule]]
) -> None:
    """Show every alarm; publish its changes until cancelled; wait while the store is unavailable.

    `rules` returns the current rules of the gateway.
    """
    feed = _AlarmFeed(store, nodes, scopes, rules)
    async with background_task(_show_tags(store, nodes.tags), "OPC UA tags"):
        await restart_on_outage("OPC UA alarms", feed.run)


async def _show_tags(store: Store, nodes: TagNodes) -> None:
    """Show the tags and their last samples, which are saved every few seconds."""
    while True:
        with contextlib.suppress(Unavailable):
            nodes.show(await tags.load_last(store))
        await nodes.publish()
        await next_tick(_TAGS_S)


class _AlarmFeed:
    """The last change that is shown, and the scopes of the jobs of alarms."""

    def __init__(
        self, store: Store, nodes: AlarmNodes, scopes: Sequence[str], rules: Callable[[], Iterable[Rule]]
    ) -> None:
        self._store = store
        self._nodes = nodes
        self._scopes = scopes
        self._rules = rules
        self._position: str | None = None
        self._scope_of_job: dict[str, str | None] = {}

    async def run(self) -> None:
        """Show the alarms, then each change. Raises Unavailable."""
        newest = await alarms.newest(self._store, _NEWEST)
        if self._position is None or not self._continues(newest):
            await self._show_all(newest)
        async for change in alarms.follow(self._store, self._position or BEGINNING):
            with Isolated(logger, "alarm not shown", alarm=change.alarm.id):
                place, kind = await self._shown_of(change.alarm)
                await self._nodes.conditions.follow(change, place, kind)
            self._position = change.position

    def _continues(self, newest: Sequence[AlarmChange]) -> bool:
        """Return whether no change since the last one is missing."""
        if not newest:
            return self._position == BEGINNING
        is_whole = len(newest) < _NEWEST
        first, last, shown = _order(newest[0].position), _order(newest[-1].position), _order(self._position)
        return shown <= last and (is_whole or first <= shown)

    async def _show_all(self, newest: Sequence[AlarmChange]) -> None:
        """Show the alarms of the store, and those of the newest changes that are normal again."""
        is_again = self._position is not None
        self._nodes.conditions.clear()
        states: dict[str, FollowedAlarm] = {}
        for change in newest:
            states[change.alarm.id] = follow_change(states.get(change.alarm.id), change)
        position = newest[-1].position if newest else BEGINNING
        stored = (await alarms.load(self._store)).alarms
        # A change between the two readings follows.
        followed_alarms = {alarm_id: state for alarm_id, state in states.items() if alarm_id not in stored}
        followed_alarms |= {alarm_id: _state(states.get(alarm_id), alarm) for alarm_id, alarm in stored.items()}
        pacer = Pacer()
        for state in followed_alarms.values():
            with Isolated(logger, "alarm not shown", alarm=state.alarm.id):
                place, kind = await self._shown_of(state.alarm)
                self._nodes.conditions.put(state, place, kind)
            await pacer.step()
        self._position = position
        if is_again:
            logger.info("conditions read again")
            await self._nodes.refresher.require_refresh()

    async def _shown_of(self, alarm: Alarm) -> tuple[ConditionPlace, ConditionKind]:
        rule = next((item for item in self._rules() if item.id == alarm.rule), None)
        place, tag = await self._place_of(alarm), tag_of_alarm(rule, alarm)
        if tag is not None:
            self._nodes.tags.expect(tag)
        if tag is None and self._nodes.tags.has(alarm.subject):
            tag = alarm.subject
        return (place if tag is None else replace(place, input_node=tag_node_id(tag))), kind_of(rule, alarm)

    async def _place_of(self, alarm: Alarm) -> ConditionPlace:
        """Return the machine of an alarm, or the gateway: the machine of its job, or the only one."""
        places = self._nodes.places
        if is_of_gateway(alarm):
            return places[GATEWAY_NAME]
        if len(self._scopes) == 1:
            return places[self._scopes[0]]
        condition_view = self._nodes.conditions.view_of(alarm.id)
        if alarm.job is None:
            return condition_view.place if condition_view else places[GATEWAY_NAME]
        if alarm.job not in self._scope_of_job:
            if len(self._scope_of_job) >= _MAX_JOBS:
                self._scope_of_job.clear()
            job = await jobs.load(self._store, alarm.job)
            self._scope_of_job[alarm.job] = job.scope if job else None
        return places.get(self._scope_of_job[alarm.job] or GATEWAY_NAME, places[GATEWAY_NAME])


def _state(state: FollowedAlarm | None, alarm: Alarm) -> FollowedAlarm:
    """Return the state of a stored alarm; the changes may be newer or older."""
    if state is not None and state.alarm.changed_at >= alarm.changed_at:
        return state
    if state is None:
        return FollowedAlarm(alarm)
    return FollowedAlarm(alarm, state.position, state.announced, state.last_severity, state.times)


def _order(position: str | None) -> tuple[int, int]:
    milliseconds, _, number = (position or BEGINNING).partition("-")
    return int(milliseconds), int(number or 0)
