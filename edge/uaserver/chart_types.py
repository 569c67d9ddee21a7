"""The types of running charts: what a chart, a step and an action show, as tables, and the type nodes made of them.

RunningChartType    Recipe, State, StartTime, ActiveSteps, WhyWaiting, Deadline, Error
                    Steps / <Step>: ChartStepType      X, T, Count
                    Actions / <Action>: ChartActionType      State, Attempt, Result, Deadline, Error
                    Pause, Resume, Stop, Abort
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from asyncua import ua
from asyncua.server.internal_server import InternalServer

from edge.model.job_state import Cause
from edge.uaserver.namespaces import Namespace
from edge.uaserver.variant import variant

T = ua.VariantType

CHART_METHODS = tuple(cause.value for cause in (Cause.PAUSE, Cause.RESUME, Cause.STOP, Cause.ABORT))

_HAS_COMPONENT = ua.NodeId(ua.ObjectIds.HasComponent)
_HAS_PROPERTY = ua.NodeId(ua.ObjectIds.HasProperty)
_HAS_SUBTYPE = ua.NodeId(ua.ObjectIds.HasSubtype)
_HAS_MODELLING_RULE = ua.NodeId(ua.ObjectIds.HasModellingRule)
_MANDATORY = ua.NodeId(ua.ObjectIds.ModellingRule_Mandatory)
_PLACEHOLDER = ua.NodeId(ua.ObjectIds.ModellingRule_OptionalPlaceholder)
_BASE_OBJECT_TYPE = ua.NodeId(ua.ObjectIds.BaseObjectType)
_DURATION = ua.NodeId(ua.ObjectIds.Duration)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_INSTANT = datetime(1601, 1, 1, tzinfo=UTC)  # the null of DateTime (OPC 10000-6, 5.2.2.5)


@dataclass(frozen=True, slots=True)
class Shown:
    """A variable: its data type, what it means, and how its value is got from the picture of its owner."""

    name: str
    data_type: ua.NodeId
    description: str
    value: Callable[[Any], ua.Variant]
    is_array: bool = False


def type_node(*path: str) -> ua.NodeId:
    """Name a node of our types."""
    return ua.NodeId("/".join(path), Namespace.TYPES)


def type_name(name: str) -> ua.QualifiedName:
    """Name a member of our types, and of what is made by them."""
    return ua.QualifiedName(name, Namespace.TYPES)


def _instant(milliseconds: int | None) -> ua.Variant:
    return ua.Variant(
        _NO_INSTANT if milliseconds is None else _EPOCH + timedelta(milliseconds=milliseconds), T.DateTime
    )


def _texts(texts: tuple[str, ...]) -> ua.Variant:
    return ua.Variant(list(texts), T.String, is_array=True)


def _text(text: str) -> ua.Variant:
    return ua.Variant(text, T.String)


def _base(kind: ua.VariantType) -> ua.NodeId:
    return ua.NodeId(kind.value)


CHART_TYPE = type_node("RunningChartType")
STEP_TYPE = type_node("ChartStepType")
ACTION_TYPE = type_node("ChartActionType")

CHART = (
    Shown("Recipe", _base(T.String), "The ID of its Work Master.", lambda p: _text(p.recipe)),
    Shown("State", _base(T.String), "running, paused, or how it ended.", lambda p: _text(p.state)),
    Shown("StartTime", _base(T.DateTime), "When the job started.", lambda p: _instant(p.started_at)),
    Shown(
        "ActiveSteps",
        _base(T.String),
        "The steps that are active now.",
        lambda p: _texts(tuple(name for name, step in p.steps.items() if step.active)),
        is_array=True,
    ),
    Shown(
        "WhyWaiting",
        _base(T.String),
        "What it waits for: each transition with what it lacks, each open command with its age.",
        lambda p: _texts(p.waiting),
        is_array=True,
    ),
    Shown("Deadline", _base(T.DateTime), "When time alone will change something.", lambda p: _instant(p.deadline)),
    Shown("Error", _base(T.String), "Why it failed, if it has.", lambda p: _text(p.error)),
)
STEP = (
    Shown("X", _base(T.Boolean), "Whether it is active.", lambda p: ua.Variant(p.active, T.Boolean)),
    Shown(
        "T",
        _DURATION,
        "How long it has been active, or was when it was left; pauses do not count.",
        lambda p: ua.Variant(float(p.elapsed_ms), T.Double),
    ),
    Shown("Count", _base(T.UInt32), "How often it was active.", lambda p: ua.Variant(p.count, T.UInt32)),
)
ACTION = (
    Shown("State", _base(T.String), "How its latest activation stands.", lambda p: _text(p.state)),
    Shown("Attempt", _base(T.UInt32), "How often it was started.", lambda p: ua.Variant(p.attempt, T.UInt32)),
    Shown("Result", ua.NodeId(ua.ObjectIds.BaseDataType), "What the equipment answered.", lambda p: variant(p.result)),
    Shown("Deadline", _base(T.DateTime), "When its answer is overdue.", lambda p: _instant(p.deadline)),
    Shown("Error", _base(T.String), "Why it failed, if it has.", lambda p: _text(p.error)),
)

_COMMENT = ua.Argument(
    Name="Comment",
    DataType=_base(T.LocalizedText),
    ValueRank=ua.ValueRank.OneDimension,
    ArrayDimensions=[0],
    Description=ua.LocalizedText("Why; it is kept with the job."),
)
_RETURN_STATUS = ua.Argument(
    Name="ReturnStatus",
    DataType=_base(T.UInt64),
    ValueRank=ua.ValueRank.Scalar,
    Description=ua.LocalizedText("As that of the job method of this name (OPC 10031-4, B.2)."),
)


def add_chart_types(iserver: InternalServer) -> None:
    """Add the type nodes."""
    for item in _type_items():
        (result,) = iserver.node_mgt_service.add_nodes([item])
        result.StatusCode.check()
    rules = [
        ua.AddReferencesItem(node, _HAS_MODELLING_RULE, IsForward=True, TargetNodeId=rule)
        for node, rule in _modelling_rules()
    ]
    for status in iserver.node_mgt_service.add_references(rules):
        status.check()


def _type_items() -> Iterator[ua.AddNodesItem]:
    for type_id, members in ((STEP_TYPE, STEP), (ACTION_TYPE, ACTION), (CHART_TYPE, CHART)):
        yield _item(type_id, _BASE_OBJECT_TYPE, _HAS_SUBTYPE, ua.NodeClass.ObjectType, ua.ObjectTypeAttributes())
        for shown in members:
            yield _variable(type_node(type_id.Identifier, shown.name), type_id, shown)
    for folder, name, member in (("Steps", "<Step>", STEP_TYPE), ("Actions", "<Action>", ACTION_TYPE)):
        place = type_node("RunningChartType", folder)
        yield _object(place, CHART_TYPE, _HAS_COMPONENT, ua.NodeId(ua.ObjectIds.FolderType))
        yield _object(type_node("RunningChartType", folder, name), place, _HAS_COMPONENT, member)
    for name in CHART_METHODS:
        method = type_node("RunningChartType", name)
        yield _item(method, CHART_TYPE, _HAS_COMPONENT, ua.NodeClass.Method, _executable())
        for side, argument in (("InputArguments", _COMMENT), ("OutputArguments", _RETURN_STATUS)):
            yield _arguments(type_node("RunningChartType", name, side), method, side, argument)


def _modelling_rules() -> Iterator[tuple[ua.NodeId, ua.NodeId]]:
    for type_id, members in ((STEP_TYPE, STEP), (ACTION_TYPE, ACTION), (CHART_TYPE, CHART)):
        yield from ((type_node(type_id.Identifier, shown.name), _MANDATORY) for shown in members)
    yield from ((type_node("RunningChartType", name), _MANDATORY) for name in ("Steps", "Actions", *CHART_METHODS))
    yield type_node("RunningChartType", "Steps", "<Step>"), _PLACEHOLDER
    yield type_node("RunningChartType", "Actions", "<Action>"), _PLACEHOLDER


def _item(
    node_id: ua.NodeId, parent: ua.NodeId, reference: ua.NodeId, node_class: ua.NodeClass, attributes: Any
) -> ua.AddNodesItem:
    name = node_id.Identifier.rpartition("/")[2]
    attributes.DisplayName = ua.LocalizedText(name)
    return ua.AddNodesItem(
        RequestedNewNodeId=node_id,
        BrowseName=type_name(name),
        NodeClass=node_class,
        ParentNodeId=parent,
        ReferenceTypeId=reference,
        NodeAttributes=attributes,
    )


def _object(node_id: ua.NodeId, parent: ua.NodeId, reference: ua.NodeId, type_id: ua.NodeId) -> ua.AddNodesItem:
    item = _item(node_id, parent, reference, ua.NodeClass.Object, ua.ObjectAttributes())
    item.TypeDefinition = type_id
    return item


def _variable(node_id: ua.NodeId, parent: ua.NodeId, shown: Shown) -> ua.AddNodesItem:
    item = _item(node_id, parent, _HAS_COMPONENT, ua.NodeClass.Variable, variable_attributes(shown))
    item.TypeDefinition = ua.NodeId(ua.ObjectIds.BaseDataVariableType)
    return item


def _arguments(node_id: ua.NodeId, method: ua.NodeId, side: str, argument: ua.Argument) -> ua.AddNodesItem:
    attributes = ua.VariableAttributes()
    attributes.DataType = ua.NodeId(ua.ObjectIds.Argument)
    attributes.ValueRank = ua.ValueRank.OneDimension
    attributes.ArrayDimensions = [1]
    attributes.Value = ua.Variant([argument], T.ExtensionObject, is_array=True)
    attributes.AccessLevel = attributes.UserAccessLevel = 1 << ua.AccessLevel.CurrentRead
    item = _item(node_id, method, _HAS_PROPERTY, ua.NodeClass.Variable, attributes)
    item.BrowseName = ua.QualifiedName(side)
    item.TypeDefinition = ua.NodeId(ua.ObjectIds.PropertyType)
    return item


def variable_attributes(shown: Shown) -> ua.VariableAttributes:
    """Give the attributes that a variable has in every chart."""
    attributes = ua.VariableAttributes()
    attributes.DisplayName = ua.LocalizedText(shown.name)
    attributes.Description = ua.LocalizedText(shown.description, "en")
    attributes.DataType = shown.data_type
    attributes.ValueRank = ua.ValueRank.OneDimension if shown.is_array else ua.ValueRank.Scalar
    attributes.ArrayDimensions = [0] if shown.is_array else None
    attributes.AccessLevel = attributes.UserAccessLevel = 1 << ua.AccessLevel.CurrentRead
    return attributes


def _executable() -> ua.MethodAttributes:
    attributes = ua.MethodAttributes()
    attributes.Executable = True
    attributes.UserExecutable = False
    return attributes
