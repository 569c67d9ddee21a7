"""Publishes the maintenance mode: the object Maintenance of the gateway, the Server object, the state of each machine.

    Objects / Gateway / Maintenance / On, Kind, Message, Since, Until, By, SwitchOn(), SwitchOff()
    Server / ServiceLevel, EstimatedReturnTime                                     (OPC 10000-5, 6.3.1)
    <machine> / MachineryBuildingBlocks / MachineryItemState, MachineryOperationMode   (OPC 40001-1, 12)

Each session reads the message in the first of its LocaleIds that has a text; subscriptions have the default language.
"""

from collections.abc import Iterator, Mapping, Sequence

from asyncua import ua

from edge.model.plant import Maintenance
from edge.opcua.server_core import ServerCore
from edge.uaserver.chart_types import RETURN_STATUS
from edge.uaserver.enumerations import Enumeration, add_enumeration
from edge.uaserver.live_list import write_value
from edge.uaserver.method_roles import SWITCH_OFF_METHOD, SWITCH_ON_METHOD
from edge.uaserver.methods import Target
from edge.uaserver.namespaces import Namespace
from edge.uaserver.node_parts import HAS_COMPONENT
from edge.uaserver.own_types import (
    MANDATORY,
    T,
    VariableSpec,
    add_modelling_rules,
    add_nodes,
    argument,
    base,
    instant,
    item,
    method_items,
    object_item,
    object_type,
    text,
    type_node,
    variable_item,
)
from edge.uaserver.view import MaintenanceView, ServiceLevel

MAINTENANCE_TYPE = type_node("MaintenanceType")
_OBJECT = ua.NodeId("Gateway/Maintenance", Namespace.APPLICATION)
_GATEWAY = ua.NodeId("Gateway", Namespace.APPLICATION)
_RETURN_TIME = ua.NodeId(ua.ObjectIds.Server_EstimatedReturnTime)
_SERVICE_LEVEL = ua.NodeId(ua.ObjectIds.Server_ServiceLevel)

ITEM_STATES: Mapping[str, int] = {"OutOfService": 5004, "Executing": 5006, "NotExecuting": 5007}
OPERATION_MODES: Mapping[str, int] = {"Maintenance": 5025, "Processing": 5026}
"""The states of the two state machines that occur here, with their NodeIds in the namespace of Machinery."""


def _flag(mode: Maintenance | None) -> ua.Variant:
    return ua.Variant(mode is not None, T.Boolean)


def _since(mode: Maintenance | None) -> int | None:
    return mode.since or None if mode else None


_KIND = Enumeration("MaintenanceKind", "What the maintenance mode does to running jobs.", ("off", "drain", "now"))
_VARIABLES = (
    VariableSpec("On", base(T.Boolean), "Whether work is kept from starting.", lambda v: _flag(v.mode)),
    VariableSpec(
        "Kind",
        _KIND.data_type,
        "What happens to running jobs: drain, they end, or now, they are paused; off while the mode is off.",
        lambda v: _KIND.variant(v.mode.kind.value if v.mode else "off"),
    ),
    VariableSpec(
        "Message",
        base(T.LocalizedText),
        "What callers are answered, in the language of the session.",
        lambda v: ua.Variant(ua.LocalizedText(v.message(())), T.LocalizedText),
    ),
    VariableSpec("Since", base(T.DateTime), "When it was switched on.", lambda v: instant(_since(v.mode))),
    VariableSpec(
        "Until", base(T.DateTime), "When it is expected to end.", lambda v: instant(v.mode.until if v.mode else None)
    ),
    VariableSpec("By", base(T.String), "Who switched it on.", lambda v: text(v.mode.by if v.mode else "")),
)
_ON_ARGUMENTS = (
    argument("Now", base(T.Boolean), "True: running jobs are paused; false: they end."),
    argument("Message", base(T.String), "What callers are answered; empty for the text of the product."),
    argument("Until", base(T.DateTime), "When it is expected to end; null for unknown."),
)
_METHODS: Mapping[str, tuple[str, Sequence[ua.Argument]]] = {
    SWITCH_ON_METHOD: ("Keep work from starting on this gateway.", _ON_ARGUMENTS),
    SWITCH_OFF_METHOD: ("Let work start again.", ()),
}


class MaintenanceObject:
    """The nodes that show the maintenance mode, for the gateway and for each machine."""

    def __init__(self, core: ServerCore, machines: Mapping[str, ua.NodeId]) -> None:
        """Add the nodes; `machines` are the building blocks of each scope."""
        add_enumeration(core.aspace, _KIND)
        add_nodes(core, _types())
        add_modelling_rules(core, _rules())
        add_nodes(core, _instances())
        self._core = core
        self._machines = machines
        self._view = MaintenanceView(None, lambda _: "", frozenset())
        core.localized[_member("Message")] = lambda locales: ua.Variant(
            ua.LocalizedText(self._view.message(locales), locales[0] if locales else None), T.LocalizedText
        )
        self.targets = {_OBJECT: _target()}
        """The objects with methods: that of the maintenance mode."""

    async def show(self, view: MaintenanceView) -> None:
        """Write the values that have changed."""
        self._view = view
        is_on = view.mode is not None
        for spec in _VARIABLES:
            await self._write(_member(spec.name), spec.value(view))
        level = ServiceLevel.MAINTENANCE if is_on else view.level
        await self._write(_SERVICE_LEVEL, ua.Variant(int(level), T.Byte))
        await self._write(_RETURN_TIME, instant(view.mode.until if view.mode else None))
        for scope, blocks in self._machines.items():
            state = "Executing" if scope in view.executing else "OutOfService" if is_on else "NotExecuting"
            await self._write_state(blocks, "MachineryItemState", state, ITEM_STATES[state])
            mode = "Maintenance" if is_on else "Processing"
            await self._write_state(blocks, "MachineryOperationMode", mode, OPERATION_MODES[mode])

    async def _write_state(self, blocks: ua.NodeId, machine: str, state: str, node: int) -> None:
        current = f"{blocks.Identifier}/{machine}/CurrentState"
        shown = ua.Variant(ua.LocalizedText(state, "en"), T.LocalizedText)
        await self._write(ua.NodeId(current, blocks.NamespaceIndex), shown)
        state_id = ua.Variant(ua.NodeId(node, Namespace.MACHINERY), T.NodeId)
        await self._write(ua.NodeId(f"{current}/Id", blocks.NamespaceIndex), state_id)

    async def _write(self, node: ua.NodeId, value: ua.Variant) -> None:
        aspace = self._core.aspace
        shown = aspace.read_attribute_value(node, ua.AttributeIds.Value)
        if shown.Value != value or shown.StatusCode.is_bad():
            await write_value(aspace, node, value)


def _types() -> Iterator[ua.AddNodesItem]:
    yield from object_type(MAINTENANCE_TYPE, _VARIABLES)
    for name, (description, arguments) in _METHODS.items():
        yield from method_items(
            type_node("MaintenanceType", name), MAINTENANCE_TYPE, description, arguments, RETURN_STATUS
        )
    yield object_item(
        type_node("GatewayType", "Maintenance"), type_node("GatewayType"), HAS_COMPONENT, MAINTENANCE_TYPE
    )


def _rules() -> Iterator[tuple[ua.NodeId, ua.NodeId]]:
    for name in (*(variable_spec.name for variable_spec in _VARIABLES), *_METHODS):
        yield type_node("MaintenanceType", name), MANDATORY
    yield type_node("GatewayType", "Maintenance"), MANDATORY


def _instances() -> Iterator[ua.AddNodesItem]:
    yield object_item(_OBJECT, _GATEWAY, HAS_COMPONENT, MAINTENANCE_TYPE)
    for spec in _VARIABLES:
        yield variable_item(_member(spec.name), _OBJECT, spec)
    for name, (description, arguments) in _METHODS.items():
        yield from method_items(_member(name), _OBJECT, description, arguments, RETURN_STATUS)
    yield _return_time()


def _return_time() -> ua.AddNodesItem:
    """Return the request for the optional property EstimatedReturnTime of the Server object."""
    attributes = ua.VariableAttributes()
    attributes.DataType = base(T.DateTime)
    attributes.ValueRank = ua.ValueRank.Scalar
    attributes.AccessLevel = attributes.UserAccessLevel = 1 << ua.AccessLevel.CurrentRead
    attributes.Description = ua.LocalizedText("When the server is expected to work again.", "en")
    attributes.Value = instant(None)
    has_property = ua.NodeId(ua.ObjectIds.HasProperty)
    # The node exists in the standard, in namespace 0: its name is not the last part of its NodeId.
    named = ua.NodeId("EstimatedReturnTime", Namespace.APPLICATION)
    asked = item(named, ua.NodeId(ua.ObjectIds.Server), has_property, ua.NodeClass.Variable, attributes)
    asked.RequestedNewNodeId = _RETURN_TIME
    asked.BrowseName = ua.QualifiedName("EstimatedReturnTime", Namespace.UA)
    asked.TypeDefinition = ua.NodeId(ua.ObjectIds.PropertyType)
    return asked


def _target() -> Target:
    own = {_member(name): name for name in _METHODS}
    return Target("", own | {type_node("MaintenanceType", name): name for name in _METHODS})


def _member(name: str) -> ua.NodeId:
    return ua.NodeId(f"{_OBJECT.Identifier}/{name}", Namespace.APPLICATION)
