"""The types of running charts: tables of the variables of a chart, a step and an action, and their type nodes.

RunningChartType    Recipe, RecipeRevision, RecipeHash, State, StartTime, ActiveSteps, WhyWaiting, Deadline, Error
                    Steps / <Step>: ChartStepType      X, T, Count
                    Actions / <Action>: ChartActionType      State, Attempt, Result, Deadline, Error
                                                             Result / <Value>: AnalogUnitType
                    Pause, Resume, Stop, Abort
"""

from collections.abc import Iterator

from asyncua import ua
from asyncua.server.internal_server import InternalServer

from edge.model.job_state import Cause
from edge.opcua.variant_json import variant
from edge.sfc.run import ActionState, Outcome
from edge.uaserver.enumerations import Enumeration, add_enumeration
from edge.uaserver.measured_nodes import ANALOG_UNIT_TYPE, MEASURED_DESCRIPTION, MEASURED_TYPE
from edge.uaserver.node_parts import HAS_COMPONENT
from edge.uaserver.own_types import (
    DURATION,
    MANDATORY,
    MILLISECOND,
    PLACEHOLDER,
    T,
    VariableSpec,
    add_modelling_rules,
    add_nodes,
    argument,
    base,
    instant,
    member_rules,
    method_items,
    object_item,
    object_type,
    text,
    type_node,
    unit_id,
    unit_item,
    variable_item,
)

CHART_METHODS = tuple(cause.value for cause in (Cause.PAUSE, Cause.RESUME, Cause.STOP, Cause.ABORT))


def _texts(texts: tuple[str, ...]) -> ua.Variant:
    return ua.Variant(list(texts), T.String, is_array=True)


CHART_TYPE = type_node("RunningChartType")
STEP_TYPE = type_node("ChartStepType")
ACTION_TYPE = type_node("ChartActionType")

CHART_STATE = Enumeration("ChartState", "The state of a running chart.", (*map(str, Outcome), "paused"))
ACTION_STATE = Enumeration("ChartActionState", "The state of an activation of an action.", tuple(map(str, ActionState)))

CHART = (
    VariableSpec("Recipe", base(T.String), "The ID of its Work Master.", lambda p: text(p.recipe)),
    VariableSpec(
        "RecipeRevision",
        base(T.UInt32),
        "The revision of its Work Master that it runs; 0 without one.",
        lambda p: ua.Variant(p.recipe_name.revision, T.UInt32),
    ),
    VariableSpec("RecipeHash", base(T.String), "The hash of its recipe.", lambda p: text(p.recipe_name.hash)),
    VariableSpec(
        "State", CHART_STATE.data_type, "running, paused, or how it ended.", lambda p: CHART_STATE.variant(p.state)
    ),
    VariableSpec("StartTime", base(T.DateTime), "When the job started.", lambda p: instant(p.started_at)),
    VariableSpec(
        "ActiveSteps",
        base(T.String),
        "The steps that are active now.",
        lambda p: _texts(tuple(name for name, step in p.steps.items() if step.active)),
        is_array=True,
    ),
    VariableSpec(
        "WhyWaiting",
        base(T.String),
        "What it waits for: each transition with what it lacks, each open command with its age.",
        lambda p: _texts(p.waiting),
        is_array=True,
    ),
    VariableSpec("Deadline", base(T.DateTime), "When time alone will change something.", lambda p: instant(p.deadline)),
    VariableSpec("Error", base(T.String), "Why it failed, if it has.", lambda p: text(p.error)),
)
STEP = (
    VariableSpec("X", base(T.Boolean), "Whether it is active.", lambda p: ua.Variant(p.active, T.Boolean)),
    VariableSpec(
        "T",
        DURATION,
        "How long it has been active, or was when it was left; pauses do not count.",
        lambda p: ua.Variant(float(p.elapsed_ms), T.Double),
        unit=MILLISECOND,
    ),
    VariableSpec("Count", base(T.UInt32), "How often it was active.", lambda p: ua.Variant(p.count, T.UInt32)),
)
ACTION = (
    VariableSpec(
        "State",
        ACTION_STATE.data_type,
        "How its latest activation stands.",
        lambda p: ACTION_STATE.variant(p.state),
    ),
    VariableSpec("Attempt", base(T.UInt32), "How often it was started.", lambda p: ua.Variant(p.attempt, T.UInt32)),
    VariableSpec(
        "Result", ua.NodeId(ua.ObjectIds.BaseDataType), "What the equipment answered.", lambda p: variant(p.result)
    ),
    VariableSpec("Deadline", base(T.DateTime), "When its answer is overdue.", lambda p: instant(p.deadline)),
    VariableSpec("Error", base(T.String), "Why it failed, if it has.", lambda p: text(p.error)),
)

_MEASURED_VALUE = type_node("ChartActionType", "Result", "<Value>")
_VALUE = VariableSpec("<Value>", MEASURED_TYPE, MEASURED_DESCRIPTION, lambda _: ua.Variant())

_COMMENT = argument("Comment", base(T.LocalizedText), "The reason; it is kept with the job.", is_array=True)
RETURN_STATUS = argument("ReturnStatus", base(T.UInt64), "The ReturnStatus of the job methods (OPC 10031-4, B.2).")


def add_chart_types(iserver: InternalServer) -> None:
    """Add the type nodes with their modelling rules."""
    for enumeration in (CHART_STATE, ACTION_STATE):
        add_enumeration(iserver.aspace, enumeration)
    add_nodes(iserver, _type_items())
    add_modelling_rules(iserver, _modelling_rules())


def _type_items() -> Iterator[ua.AddNodesItem]:
    for type_id, members in ((STEP_TYPE, STEP), (ACTION_TYPE, ACTION), (CHART_TYPE, CHART)):
        yield from object_type(type_id, members)
    yield from _measured_items()
    for folder, name, member in (("Steps", "<Step>", STEP_TYPE), ("Actions", "<Action>", ACTION_TYPE)):
        place = type_node("RunningChartType", folder)
        yield object_item(place, CHART_TYPE, HAS_COMPONENT, ua.NodeId(ua.ObjectIds.FolderType))
        yield object_item(type_node("RunningChartType", folder, name), place, HAS_COMPONENT, member)
    for name in CHART_METHODS:
        method = type_node("RunningChartType", name)
        yield from method_items(method, CHART_TYPE, f"{name} the job of this chart.", (_COMMENT,), RETURN_STATUS)


def _measured_items() -> Iterator[ua.AddNodesItem]:
    value = variable_item(_MEASURED_VALUE, type_node("ChartActionType", "Result"), _VALUE)
    value.TypeDefinition = ANALOG_UNIT_TYPE
    yield value
    yield unit_item(_MEASURED_VALUE, ua.Variant())


def _modelling_rules() -> Iterator[tuple[ua.NodeId, ua.NodeId]]:
    for type_id, members in ((STEP_TYPE, STEP), (ACTION_TYPE, ACTION), (CHART_TYPE, CHART)):
        yield from member_rules(type_id, members)
    yield _MEASURED_VALUE, PLACEHOLDER
    yield unit_id(_MEASURED_VALUE), MANDATORY
    yield from ((type_node("RunningChartType", name), MANDATORY) for name in ("Steps", "Actions", *CHART_METHODS))
    yield type_node("RunningChartType", "Steps", "<Step>"), PLACEHOLDER
    yield type_node("RunningChartType", "Actions", "<Action>"), PLACEHOLDER
