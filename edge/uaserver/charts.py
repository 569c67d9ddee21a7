"""The running charts: one object for each run, whose nodes are created on the first access by a client.

Their values are computed on every read.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Any

import structlog
from asyncua import ua
from asyncua.server.address_space import AddressSpace, AttributeValue, NodeData
from asyncua.server.internal_server import InternalServer
from msgspec import Struct, field

from edge.foundation.instant import Clock
from edge.foundation.text import Text
from edge.model.job_state import has_ended
from edge.model.localized_text import AuthorText, localized, words_of
from edge.model.recipe import Action, Recipe, Step
from edge.opcua.access import LOCALES
from edge.sfc.identifiers import quote
from edge.sfc.run import ActionState, Association, StepState
from edge.sfc.signal import NO_MIRRORS, Mirrors
from edge.sfc.titles import step_of
from edge.sfc.view import next_deadline
from edge.sfc.waiting import NO_HOLDERS, explain_waiting
from edge.station.active_runs import ActiveRuns, LockHolders
from edge.station.decision import LoadedJob
from edge.uaserver.chart_types import (
    ACTION,
    ACTION_TYPE,
    CHART,
    CHART_METHODS,
    CHART_TYPE,
    STEP,
    STEP_TYPE,
)
from edge.uaserver.measured_nodes import (
    ANALOG_UNIT_TYPE,
    ReadMeasured,
    measured_id,
    measured_nodes,
    unit_node,
)
from edge.uaserver.methods import Target
from edge.uaserver.namespaces import Namespace
from edge.uaserver.node_parts import (
    HAS_COMPONENT,
    compute_namespace,
    describe,
    make_reference,
    object_attributes,
    reference_to,
    reference_to_type,
    scalar,
    variable_attributes,
)
from edge.uaserver.own_types import VariableSpec, type_name, type_node, unit_of
from edge.uaserver.view import NO_TEXTS, ActionView, ChartView, PartTexts, StepView, ViewReader

Part = Callable[[ChartView], Any]

FOLDER_TYPE = ua.NodeId(ua.ObjectIds.FolderType)
METHODS = MappingProxyType({type_node("RunningChartType", name): name for name in CHART_METHODS})
"""The methods of every chart: all charts share the method nodes of the type."""

_DESCRIPTIONS = MappingProxyType(
    {CHART_TYPE: "A running job.", STEP_TYPE: "A step of the chart.", ACTION_TYPE: "An action of a step."}
)
_VARIABLE_TYPE = ua.NodeId(ua.ObjectIds.BaseDataVariableType)

A = ua.AttributeIds
T = ua.VariantType


def chart_node_id(*path: str) -> ua.NodeId:
    """Return the NodeId for a path in the namespace of the running charts."""
    return ua.NodeId("/".join(path), Namespace.CHARTS)


def object_node(node_id: ua.NodeId, name: ua.QualifiedName, type_id: ua.NodeId, parent: NodeData) -> NodeData:
    """Create an object below a parent; the references of the parent stay unchanged."""
    node = NodeData(node_id)
    node.attributes = object_attributes(node_id, name, describe(name.Name, _DESCRIPTIONS.get(type_id, "")).Text or "")
    node.references = [reference_to_type(type_id), reference_to(parent, HAS_COMPONENT, is_forward=False)]
    return node


def nodes_of(path: str, name: str, folder: NodeData, read_view: ViewReader) -> Iterator[NodeData]:
    """Yield all nodes of a chart, its own object first."""
    view = read_view()
    root = object_node(chart_node_id(path), ua.QualifiedName(name, Namespace.CHARTS), CHART_TYPE, folder)
    root.references += _TO_METHODS
    set_texts(root, name, view.texts)
    yield root
    yield from _variables(path, root, CHART, read_view, lambda drawn: drawn)
    parts: tuple[tuple[str, ua.NodeId, tuple[VariableSpec, ...], Mapping[str, StepView | ActionView]], ...] = (
        ("Steps", STEP_TYPE, STEP, view.steps),
        ("Actions", ACTION_TYPE, ACTION, view.actions),
    )
    for kind, type_id, variable_specs, members in parts:
        group = object_node(chart_node_id(path, kind), type_name(kind), FOLDER_TYPE, root)
        root.references.append(reference_to(group, HAS_COMPONENT))
        yield group
        for member, shown in members.items():
            below = f"{path}/{kind}/{quote(member)}"
            node = object_node(chart_node_id(below), ua.QualifiedName(member, Namespace.CHARTS), type_id, group)
            set_texts(node, words_of(member.partition("@")[0]), shown.texts)
            group.references.append(reference_to(node, HAS_COMPONENT))
            yield node
            yield from _variables(below, node, variable_specs, read_view, _part(kind, member))


def set_texts(node: NodeData, name: str, texts: PartTexts) -> None:
    """Show a node by its title and description in the locale of each session; without a title by a name."""
    node.attributes[A.DisplayName] = _localized(texts.title or name)
    if texts.description:
        node.attributes[A.Description] = _localized(texts.description)


def _localized(text: AuthorText) -> AttributeValue:
    def in_locales(*_: object) -> ua.DataValue:
        chosen = localized(text, LOCALES.get())
        return ua.DataValue(ua.Variant(ua.LocalizedText(chosen.text, chosen.locale or None), T.LocalizedText))

    # References show it in English, or in its first language.
    attribute = AttributeValue(in_locales())
    attribute.value_callback = in_locales
    return attribute


def _part(kind: str, name: str) -> Part:
    if kind == "Steps":
        return lambda view: view.steps[name]
    return lambda view: view.actions[name]


def _variables(
    path: str, owner: NodeData, variables: tuple[VariableSpec, ...], read_view: ViewReader, part: Part
) -> Iterator[NodeData]:
    back = reference_to(owner, HAS_COMPONENT, is_forward=False)
    for variable_spec in variables:
        node = NodeData(chart_node_id(path, variable_spec.name))
        value = AttributeValue(ua.DataValue())
        value.value_callback = _reader(variable_spec, read_view, part)
        node.attributes = {**_OF_VARIABLES[variable_spec], A.NodeId: scalar(node.nodeid, T.NodeId), A.Value: value}
        kind = ANALOG_UNIT_TYPE if variable_spec.unit else _VARIABLE_TYPE
        node.references = [reference_to_type(kind, ua.NodeClass.VariableType), back]
        owner.references.append(reference_to(node, HAS_COMPONENT))
        yield node
        if variable_spec.unit:
            yield unit_node(node, ua.Variant(unit_of(variable_spec.unit), T.ExtensionObject))


def new_measured_nodes(path: str, nodes: Mapping[ua.NodeId, NodeData], read_view: ViewReader) -> Iterator[NodeData]:
    """Yield the nodes of measured values that a chart does not have yet."""
    for action, shown in read_view().actions.items():
        result = nodes[chart_node_id(path, "Actions", quote(action), "Result")]
        for name, value in shown.measured.items():
            if measured_id(result.nodeid, name) not in nodes:
                yield from measured_nodes(result, value, _measured_reader(read_view, action, name))


def _measured_reader(read_view: ViewReader, action: str, name: str) -> ReadMeasured:
    return lambda: read_view().actions[action].measured.get(name)


def _reader(
    shown: VariableSpec, read_view: ViewReader, part: Part
) -> Callable[[ua.NodeId, ua.AttributeIds], ua.DataValue]:
    def read(_node_id: ua.NodeId, _attribute: ua.AttributeIds) -> ua.DataValue:
        now = datetime.now(UTC)
        return ua.DataValue(shown.value(part(read_view())), SourceTimestamp=now, ServerTimestamp=now)

    return read


_OF_VARIABLES = MappingProxyType(
    {
        shown: variable_attributes(type_name(shown.name), shown.data_type, shown.description, is_array=shown.is_array)
        for shown in (*CHART, *STEP, *ACTION)
    }
)
_TO_METHODS = tuple(
    make_reference(HAS_COMPONENT, node_id, type_name(name), ua.NodeClass.Method) for node_id, name in METHODS.items()
)


logger = structlog.get_logger(__name__)

BUNDLE_S = 0.05
_TICK_S = 1.0  # interval of the notifications that carry elapsed times


class _ChartFolder(NodeData):
    """The folder object with the charts of a machine; its references follow the runs."""

    def __init__(self, made: NodeData) -> None:
        self.runs: dict[str, ua.ReferenceDescription] = {}
        super().__init__(made.nodeid)
        self.attributes = made.attributes
        self._own = made.references

    @property
    def references(self) -> list[ua.ReferenceDescription]:
        """The references to its type and its parent, then one to every run."""
        return [*self._own, *self.runs.values()]

    @references.setter
    def references(self, own: list[ua.ReferenceDescription]) -> None:
        self._own = own


class _Subscribers(dict[int, Any]):
    """The callbacks of one value; the first one starts the ticks."""

    def __init__(self, changed: asyncio.Event) -> None:
        super().__init__()
        self._changed = changed

    def __setitem__(self, handle: int, callback: Any) -> None:
        super().__setitem__(handle, callback)
        self._changed.set()


class _Chart(Struct):
    """One run: its view reader, and its nodes after the first access by a client."""

    read_view: ViewReader
    nodes: dict[ua.NodeId, NodeData] = field(default_factory=dict)
    view: ChartView | None = None
    view_at: float = 0.0
    has_changed: bool = False
    may_lack_values: bool = True
    """Whether a result may have come since its nodes were complete."""

    def current_view(self) -> ChartView:
        """Return the current view, cached for BUNDLE_S: a client reads many values at once."""
        now = asyncio.get_running_loop().time()
        if self.view is None or now - self.view_at > BUNDLE_S:
            self.view, self.view_at = self.read_view(), now
        return self.view

    def watched(self) -> Iterator[tuple[ua.NodeId, AttributeValue]]:
        """Yield every value that has subscribers."""
        for node_id, node in self.nodes.items():
            held = node.attributes.get(ua.AttributeIds.Value)
            if held is not None and held.datachange_callbacks:
                yield node_id, held


class Charts:
    """The charts of all machines: a part of the address space."""

    def __init__(self, iserver: InternalServer) -> None:
        self._aspace: AddressSpace = iserver.aspace
        self._folders: dict[str, _ChartFolder] = {}
        self._scopes: dict[str, str] = {}
        self._charts: dict[str, _Chart] = {}
        self._gone: list[AttributeValue] = []
        self._changed = asyncio.Event()
        compute_namespace(iserver.aspace, Namespace.CHARTS, self.node)

    def add_machine(self, scope: str, machine: ua.NodeId) -> None:
        """Add the folder RunningCharts to a machine."""
        path = quote(scope)
        parent = self._aspace[machine]
        folder = _ChartFolder(object_node(chart_node_id(path), type_name("RunningCharts"), FOLDER_TYPE, parent))
        self._folders[path] = folder
        self._scopes[path] = scope
        parent.references.append(reference_to(folder, HAS_COMPONENT))

    def show(self, scope: str, job_order_id: str, read_view: ViewReader) -> None:
        """Add a run, or update it; `read_view` is called only on a read or a notification."""
        path = _path(scope, job_order_id)
        chart = self._charts.get(path)
        if chart is None:
            self._charts[path] = _Chart(read_view)
            name = ua.QualifiedName(job_order_id, Namespace.CHARTS)
            folder = self._folders[quote(scope)]
            chart_object = object_node(chart_node_id(path), name, CHART_TYPE, folder)
            folder.runs[path] = reference_to(chart_object, HAS_COMPONENT)
            return
        chart.read_view = read_view
        chart.view = None
        chart.may_lack_values = True
        if chart.nodes:
            chart.has_changed = True
            self._changed.set()

    def hide(self, scope: str, job_order_id: str) -> None:
        """Remove a run that has ended; notify its subscribers with BadNodeIdUnknown."""
        path = _path(scope, job_order_id)
        self._folders[quote(scope)].runs.pop(path, None)
        chart = self._charts.pop(path, None)
        if chart is None:
            return
        for _, held in chart.watched():
            self._gone.append(held)
            self._changed.set()

    def target_of(self, node_id: ua.NodeId) -> Target | None:
        """Return the method target of a chart object; None for every other node."""
        if node_id.NamespaceIndex != Namespace.CHARTS or node_id.Identifier not in self._charts:
            return None
        name = self._folders[_first(node_id)].runs[node_id.Identifier].BrowseName.Name
        return Target(self._scopes[_first(node_id)], METHODS, job_order_id=name)

    def node(self, node_id: ua.NodeId) -> NodeData:
        """Return a node; create the nodes of its chart on the first access. Raises KeyError when there is no node."""
        identifier = node_id.Identifier
        if not isinstance(identifier, str):
            raise KeyError(node_id)
        if identifier in self._folders:
            return self._folders[identifier]
        scope, _, rest = identifier.partition("/")
        path = f"{scope}/{rest.partition('/')[0]}"
        chart = self._charts[path]
        if not chart.nodes:
            folder = self._folders[scope]
            self._add(chart, nodes_of(path, folder.runs[path].BrowseName.Name, folder, chart.current_view))
        if chart.may_lack_values:
            chart.may_lack_values = False
            self._add(chart, new_measured_nodes(path, chart.nodes, chart.current_view))
        return chart.nodes[node_id]

    def _add(self, chart: _Chart, nodes: Iterator[NodeData]) -> None:
        for node in tuple(nodes):
            chart.nodes[node.nodeid] = node
            if ua.AttributeIds.Value in node.attributes:
                node.attributes[ua.AttributeIds.Value].datachange_callbacks = _Subscribers(self._changed)

    async def notify_subscribers(self) -> None:
        """Publish each change at most BUNDLE_S later, and all values with subscribers every `_TICK_S` seconds."""
        loop = asyncio.get_running_loop()
        next_tick: float | None = None
        while True:
            if not self._is_watched():
                next_tick = None
            elif next_tick is None:
                next_tick = loop.time() + _TICK_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(next_tick):
                    await self._changed.wait()
                    await asyncio.sleep(BUNDLE_S)
            self._changed.clear()
            is_tick = next_tick is not None and loop.time() >= next_tick
            if is_tick:
                next_tick = None
            await self._notify_all(every=is_tick)

    def _is_watched(self) -> bool:
        return any(True for chart in self._charts.values() if chart.nodes for _ in chart.watched())

    async def _notify_all(self, *, every: bool) -> None:
        for chart in [chart for chart in self._charts.values() if chart.has_changed or (every and chart.nodes)]:
            chart.has_changed = False
            for node_id, held in tuple(chart.watched()):
                await _notify(held, partial(held.value_callback, node_id, ua.AttributeIds.Value))
        gone, self._gone = self._gone, []
        for held in gone:
            await _notify(held, lambda: ua.DataValue(StatusCode=ua.StatusCode(ua.StatusCodes.BadNodeIdUnknown)))


async def _notify(held: AttributeValue, current_view: Callable[[], ua.DataValue]) -> None:
    for handle, callback in tuple(held.datachange_callbacks.items()):
        try:
            await callback(handle, current_view())
        except Exception as error:  # noqa: BLE001 - a fault of one value or client must not affect the others
            logger.error("OPC UA notification failed", monitored_item=handle, reason=repr(error))


def _path(scope: str, job_order_id: str) -> str:
    return f"{quote(scope)}/{quote(job_order_id)}"


def _first(node_id: ua.NodeId) -> str:
    first: str = node_id.Identifier.partition("/")[0]
    return first


_NEVER_STARTED = Association(state=ActionState.PENDING)


def show_charts(
    active_runs: ActiveRuns,
    charts: Charts,
    clock: Clock,
    holders: LockHolders,
    mirrors: Callable[[], Mirrors] = lambda: NO_MIRRORS,
) -> None:
    """Show the charts of all active runs; update each chart on every change, and hide it when its run has ended.

    `holders` says who holds the locks for which a run waits, `mirrors` returns the mirrored sets.
    """

    def show(before: LoadedJob | None, now: LoadedJob | None) -> None:
        running = None if now is None or has_ended(now.job.status) else now
        if before and (running is None or running.stored.recipe != before.stored.recipe):
            # Another recipe: the job was cleared and stored again between two changes, and the chart has other steps.
            charts.hide(before.job.scope, before.job.job_id)
        if running:
            charts.show(running.job.scope, running.job.job_id, lambda: view(running, clock(), holders.named, mirrors()))

    for loaded in active_runs.loaded.values():
        show(None, loaded)
    active_runs.listeners.append(show)


def view(
    loaded: LoadedJob, now: int, holders: Mapping[str, Text] = NO_HOLDERS, mirrors: Mirrors = NO_MIRRORS
) -> ChartView:
    """Return the view of a run at an instant, in milliseconds since the epoch."""
    run, net = loaded.stored.run, loaded.net
    at = now if run.paused_at is None else run.paused_at
    masters = loaded.job.order.work_master_id or ()
    return ChartView(
        recipe=masters[0].id if masters else "",
        recipe_name=loaded.job.recipe,
        state="paused" if run.paused else run.outcome.value,
        started_at=run.started_at,
        steps={name: _step(run.steps.get(name, _NEVER_ACTIVE), at, step_of(net, name)) for name in net.steps},
        actions={
            str(key): _action(run.associations.get(key, _NEVER_STARTED), net.recipe.actions[action.index])
            for key, action in net.actions.items()
        },
        waiting=tuple(str(wait) for wait in explain_waiting(net, run, now, holders, mirrors)),
        error=str(run.error or ""),
        deadline=next_deadline(net, run),
        texts=_texts(net.recipe),
    )


_NEVER_ACTIVE = StepState()


def _texts(part: Recipe | Step | Action) -> PartTexts:
    return PartTexts(part.title or "", part.description or "") if part.title or part.description else NO_TEXTS


def _step(state: StepState, at: int, step: Step) -> StepView:
    return StepView(state.active, state.t(at), state.count, _texts(step))


def _action(association: Association, action: Action) -> ActionView:
    return ActionView(
        association.state.value,
        association.attempt,
        association.result,
        association.deadline,
        str(association.error or ""),
        _texts(action),
    )
