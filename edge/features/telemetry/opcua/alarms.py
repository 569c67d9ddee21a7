"""Adds the conditions of alarms to the server: their namespace, their places, their methods and ConditionRefresh."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from asyncua import ua
from msgspec import Struct

from edge.features.telemetry.opcua.condition_methods import AlarmRequests, ConditionMethods
from edge.features.telemetry.opcua.condition_refresh import ConditionRefresher
from edge.features.telemetry.opcua.condition_view import ConditionPlace
from edge.features.telemetry.opcua.conditions import MAX_NORMAL, Conditions
from edge.features.telemetry.opcua.history import CONTINUATION_POINTS, History
from edge.features.telemetry.opcua.history_capabilities import add_capabilities
from edge.features.telemetry.opcua.history_events import AlarmEvents, EventHistory
from edge.features.telemetry.opcua.history_jobs import JobEvents
from edge.features.telemetry.opcua.tag_nodes import TagNodes
from edge.foundation.instant import Clock
from edge.store.client import Store
from edge.uaserver import nodesets
from edge.uaserver.gateway_object import GATEWAY_NAME
from edge.uaserver.namespaces import Namespace, alarms_uri
from edge.uaserver.parts import NewServer
from edge.uaserver.space import add_namespace_metadata

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


class AlarmNodes(Struct, frozen=True):
    """The conditions, the places where they can be by the name of the source, and ConditionRefresh."""

    conditions: Conditions
    places: Mapping[str, ConditionPlace]
    refresher: ConditionRefresher
    tags: TagNodes


async def add_alarms(new: NewServer, settings: AlarmSettings) -> AlarmNodes:
    """Add conditions below the machines and the gateway of a server."""
    core, sources, uri = new.core, new.sources, alarms_uri(settings.store_id)
    await nodesets.register(new.server, Namespace.ALARMS, uri)
    add_namespace_metadata(core, new.declared, uri)
    conditions = Conditions(core, settings.max_normal)
    places = {name: conditions.add_source(name, node_id) for name, node_id in sources.items()}
    refresher = ConditionRefresher(core, conditions, new.tasks)
    tags = conditions.tags = TagNodes(core.aspace[sources[GATEWAY_NAME]], has_history=settings.history is not None)
    of_alarms = AlarmEvents(settings.store, conditions, places, GATEWAY_NAME)
    of_jobs = [JobEvents(settings.store, scope, event) for scope, event in new.job_events.items()]
    for job_event_publisher in new.job_events.values():
        job_event_publisher.enable_history()
    events = EventHistory((of_alarms, *of_jobs), core.aspace)
    core.history = History(core.aspace.__contains__, events, settings.history)
    add_capabilities(core, has_values=settings.history is not None)
    most = ua.DataValue(ua.Variant(CONTINUATION_POINTS, ua.VariantType.UInt16))
    await core.write_attribute_value(
        ua.NodeId(ua.ObjectIds.Server_ServerCapabilities_MaxHistoryContinuationPoints), most
    )
    core.method_extensions.append(
        ConditionMethods(core.aspace, conditions, refresher, settings.request, settings.clock)
    )
    return AlarmNodes(conditions, places, refresher, tags)
