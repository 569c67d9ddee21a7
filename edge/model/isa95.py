"""The ISA-95 Job Control V2 and Machinery Jobs data types, as they travel.

Field order and optionality are those of OPC 10031-4 (2.0.0) annex A; on the wire a field has its OPC UA spelling
(`job_order_id` is `JobOrderID`). An absent optional field is None; unknown fields of a newer sender are ignored.
"""

from datetime import datetime
from enum import IntFlag
from typing import Any, Literal, TypeVar

import msgspec

from edge.model.instant import to_microseconds

_UPPER = {"id": "ID"}


def opcua_name(field: str) -> str:
    """Return the OPC UA spelling of a field: `job_order_id` becomes `JobOrderID`."""
    return "".join(_UPPER.get(word, word.capitalize()) for word in field.split("_"))


class Payload(msgspec.Struct, frozen=True, omit_defaults=True, rename=opcua_name):
    """A structure that travels in OPC UA spelling; fields at their default are left out."""


class ReturnStatus(IntFlag):
    """What a job method answers (OPC 10031-4 table 95). Success is NO_ERROR, that is 1, never 0."""

    NO_ERROR = 1
    UNKNOWN_JOB_ORDER_ID = 1 << 1
    INVALID_JOB_ORDER_STATUS = 1 << 3
    UNABLE_TO_ACCEPT_JOB_ORDER = 1 << 4
    INVALID_REQUEST = 1 << 32
    AWAITS_SECOND_PERSON = 1 << 34
    """A bit that is free for implementations: the request is kept until a second person confirms it."""

    @property
    def words(self) -> str:
        """The name with the number, for a person."""
        return f"{self.name} ({self.value})" if self.name else str(self.value)


class LocalizedText(Payload, frozen=True, kw_only=True):
    """Text with its language tag (OPC 10000-3, 8.5).

    Example: {"Text": "Rear axle for body 4711", "Locale": "en"}
    """

    text: str = ""
    locale: str = ""


class EUInformation(Payload, frozen=True, kw_only=True):
    """An engineering unit (OPC 10000-8, 5.6.4.3); `unit_id` is the UNECE code as a number."""

    namespace_uri: str = ""
    unit_id: int = msgspec.field(default=-1, name="UnitId")
    display_name: LocalizedText | None = None
    description: LocalizedText | None = None


class Parameter(Payload, frozen=True, kw_only=True):
    """ISA95ParameterDataType: a named value with unit; may nest."""

    id: str
    value: Any = None
    description: tuple[LocalizedText, ...] | None = None
    engineering_units: EUInformation | None = None
    subparameters: tuple["Parameter", ...] | None = None


class Property(Payload, frozen=True, kw_only=True):
    """ISA95PropertyDataType: as a parameter, of a resource."""

    id: str
    value: Any = None
    description: tuple[LocalizedText, ...] | None = None
    engineering_units: EUInformation | None = None
    subproperties: tuple["Property", ...] | None = None


class WorkMaster(Payload, frozen=True, kw_only=True):
    """ISA95WorkMasterDataType, extended by `data` (a recipe) and `dataschema` (the URI of its schema).

    Example: {"ID": "WM-FIRST", "Description": {"Text": "Fit the axle", "Locale": "en"},
     "Parameters": [{"ID": "torque_spec", "Value": "80Nm"}],
     "dataschema": "https://aschamberger.github.io/schemas/microdcs/sfc-recipe/v1.0.0/",
     "data": {"steps": [{"name": "Fit", "initial": true}, {"name": "Done"}],
     "transitions": [{"source": "Fit", "target": "Done", "condition": "actions.tighten.done"}],
     "actions": [{"name": "tighten", "step": "Fit", "qualifier": "N", "interaction": "push_command",
     "type_id": "com.example.station.tighten.v1", "timeout_seconds": 60}]}}
    """

    id: str
    description: LocalizedText | None = None
    parameters: tuple[Parameter, ...] | None = None
    data: dict[str, Any] | list[Any] | None = msgspec.field(default=None, name="data")
    dataschema: str | None = msgspec.field(default=None, name="dataschema")


class Equipment(Payload, frozen=True, kw_only=True):
    """ISA95EquipmentDataType; `quantity` is a DecimalString.

    Example: {"ID": "wrench-3"}
    """

    id: str
    description: tuple[LocalizedText, ...] | None = None
    equipment_use: str | None = None
    quantity: str | None = None
    engineering_units: EUInformation | None = None
    properties: tuple[Property, ...] | None = None


class Personnel(Payload, frozen=True, kw_only=True):
    """ISA95PersonnelDataType; `quantity` is a DecimalString.

    Example: {"ID": "anna"}
    """

    id: str
    description: tuple[LocalizedText, ...] | None = None
    personnel_use: str | None = None
    quantity: str | None = None
    engineering_units: EUInformation | None = None
    properties: tuple[Property, ...] | None = None


class PhysicalAsset(Payload, frozen=True, kw_only=True):
    """ISA95PhysicalAssetDataType; `quantity` is a DecimalString.

    Example: {"ID": "fixture-12"}
    """

    id: str
    description: tuple[LocalizedText, ...] | None = None
    physical_asset_use: str | None = None
    quantity: str | None = None
    engineering_units: EUInformation | None = None
    properties: tuple[Property, ...] | None = None


class Material(Payload, frozen=True, kw_only=True):
    """ISA95MaterialDataType: has no mandatory field, but the specification requires at least one of the four ids.

    Example: {"MaterialClassID": "bolt", "MaterialDefinitionID": "bolt-M8", "MaterialLotID": "L-77", "Quantity": "4"}
    """

    material_class_id: str | None = None
    material_definition_id: str | None = None
    material_lot_id: str | None = None
    material_sublot_id: str | None = None
    description: tuple[LocalizedText, ...] | None = None
    material_use: str | None = None
    quantity: str | None = None
    engineering_units: EUInformation | None = None
    properties: tuple[Property, ...] | None = None


class JobOrder(Payload, frozen=True, kw_only=True):
    """ISA95JobOrderDataType: the work that the MES requests.

    Example: {"JobOrderID": "ORDER-1001", "WorkMasterID": [{"ID": "WM-FIRST"}], "Priority": 5, "JobOrderParameters":
     [{"ID": "torque_spec", "Value": "85Nm"}, {"ID": "vin", "Value": "WVWZZZ1JZXW000001"}]}
    """

    job_order_id: str
    description: tuple[LocalizedText, ...] | None = None
    work_master_id: tuple[WorkMaster, ...] | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    priority: int | None = None
    job_order_parameters: tuple[Parameter, ...] | None = None
    personnel_requirements: tuple[Personnel, ...] | None = None
    equipment_requirements: tuple[Equipment, ...] | None = None
    physical_asset_requirements: tuple[PhysicalAsset, ...] | None = None
    material_requirements: tuple[Material, ...] | None = None


class RelativePathElement(Payload, frozen=True, kw_only=True):
    """One step of a RelativePath (OPC 10000-4, 7.30); identifiers are strings in the form of OPC 10000-6, 5.4.2."""

    reference_type_id: str = msgspec.field(default="", name="ReferenceTypeId")
    is_inverse: bool = False
    include_subtypes: bool = False
    target_name: str = ""


class RelativePath(Payload, frozen=True, kw_only=True):
    """A path from a node (OPC 10000-4, 7.30)."""

    elements: tuple[RelativePathElement, ...] = ()


class State(Payload, frozen=True, kw_only=True):
    """ISA95StateDataType: one level of a job's state; `browse_path` leads from the machine to the sub-state machine.

    Example: {"StateText": {"Text": "Ended", "Locale": "en"}, "StateNumber": 5}
    """

    state_text: LocalizedText
    state_number: int
    browse_path: RelativePath | None = None


class JobOrderAndState(Payload, frozen=True, kw_only=True):
    """ISA95JobOrderAndStateDataType: an entry of JobOrderList."""

    job_order: JobOrder
    state: tuple[State, ...]


class JobResponse(Payload, frozen=True, kw_only=True):
    """ISA95JobResponseDataType: the result of a job order.

    Example: {"JobResponseID": "c484278a-a63e-489f-869d-182372951b5d", "JobOrderID": "ORDER-1001",
     "StartTime": "2026-11-26T16:42:05.385000Z", "EndTime": "2026-11-26T16:42:05.990000Z",
     "JobState": [{"StateText": {"Text": "Ended", "Locale": "en"}, "StateNumber": 5}], "JobResponseData":
     [{"ID": "tighten", "Subparameters": [{"ID": "torque", "Value": 85.2}, {"ID": "angle", "Value": 41.5}]}]}
    """

    job_response_id: str
    description: LocalizedText | None = None
    job_order_id: str
    start_time: datetime | None = None
    end_time: datetime | None = None
    job_state: tuple[State, ...] = ()
    job_response_data: tuple[Parameter, ...] | None = None
    personnel_actuals: tuple[Personnel, ...] | None = None
    equipment_actuals: tuple[Equipment, ...] | None = None
    physical_asset_actuals: tuple[PhysicalAsset, ...] | None = None
    material_actuals: tuple[Material, ...] | None = None


class JobStatusEvent(Payload, frozen=True, kw_only=True):
    """The fields of ISA95JobOrderStatusEventType (OPC 10031-4, 6.2.8)."""

    job_order: JobOrder
    job_state: tuple[State, ...]
    job_response: JobResponse | None = None


class OrderCall(Payload, frozen=True, kw_only=True):
    """The arguments of Store, StoreAndStart and Update."""

    job_order: JobOrder
    comment: tuple[LocalizedText, ...] | None = None


class IdCall(Payload, frozen=True, kw_only=True):
    """The arguments of the methods that name a stored job order.

    Example: {"JobOrderID": "ORDER-1001", "Comment": [{"Text": "shift ends", "Locale": "en"}]}
    """

    job_order_id: str
    comment: tuple[LocalizedText, ...] | None = None


class MethodAnswer(Payload, frozen=True, kw_only=True):
    """The output argument of every job method; `reason` says why the status is not 1 (not part of the standard).

    Example: {"ReturnStatus": 1}
    Example: {"ReturnStatus": 8, "Reason": "a job order of this id is stored already"}
    """

    return_status: int
    reason: str | None = None


class RefusalAnswer(Payload, frozen=True, kw_only=True):
    """The answer to a message that was not executed: the attributes `mdcserrorkind` and `mdcserrormessage` as data.

    Example: {"ErrorKind": "invalid_payload", "Reason": "method 'POST' is not known. It is PUT, DELETE or GET."}
    """

    error_kind: str
    reason: str


class ResolveCall(Payload, frozen=True, kw_only=True):
    """The decision about an action of unknown outcome (not part of the standard).

    `resolution` is `done` (with its result in `data`), `failed` or `repeat`; `by` names who decided, `reason` says what
    was seen.

    Example: {"JobOrderID": "ORDER-1001", "Action": "tighten", "Resolution": "done", "By": "anna", "Reason": "seen",
     "Data": {"torque": 85}}
    """

    job_order_id: str
    action: str
    resolution: Literal["done", "failed", "repeat"]
    by: str
    reason: str
    data: Any = None


class InterveneCall(Payload, frozen=True, kw_only=True):
    """An intervention in a running job, as its recipe allows (not part of the standard).

    `retry` and `skip` name an action (and a step where it stands in several); `data` is the result of a skipped action.
    `complete` names a step, `force` the step to leave and the target to enter. `by` names who decided, `reason` says
    what was seen.

    Example: {"JobOrderID": "ORDER-1001", "Kind": "retry", "Action": "tighten", "By": "anna", "Reason": "bolt replaced"}
    Example: {"JobOrderID": "ORDER-1001", "Kind": "force", "Step": "Fit", "Target": "Done", "By": "anna",
     "Reason": "done by hand"}
    """

    job_order_id: str
    kind: Literal["retry", "skip", "force", "complete"]
    by: str
    reason: str
    action: str = ""
    step: str = ""
    target: str = ""
    data: Any = None


class ReleaseCall(Payload, frozen=True, kw_only=True):
    """The release of stops that the equipment has not confirmed (not part of the standard).

    `equipment` is its name in the settings; without `command`, all of its open stops and resets are released. `by`
    names the operator who has made the tool safe, `reason` says how.

    Example: {"Equipment": "wrench", "By": "anna", "Reason": "air cut off"}
    """

    equipment: str
    by: str
    reason: str
    command: str | None = None


class ReleasedStop(Payload, frozen=True, kw_only=True):
    """A stop or a reset that is not sent any more.

    Example: {"Command": "ORDER-1001/c484278a-a63e-489f-869d-182372951b5d/tighten/1", "Phase": "stop",
     "JobOrderID": "ORDER-1001"}
    """

    command: str
    phase: str
    job_order_id: str


class ReleaseAnswer(Payload, frozen=True, kw_only=True):
    """The answer to a release: what was released.

    Example: {"ReturnStatus": 1, "Released": "…"}
    """

    return_status: int
    released: tuple[ReleasedStop, ...]


class StateQuery(Payload, frozen=True, kw_only=True):
    """An entry of `JobOrderState`; what it leaves out matches every state of its level.

    Example: {"StateText": {"Text": "Ended"}}
    """

    state_text: LocalizedText | None = None
    state_number: int | None = None
    browse_path: RelativePath | None = None


class StateCall(Payload, frozen=True, kw_only=True):
    """The arguments of RequestJobResponseByJobOrderState.

    The top level comes first, then the sub-states that matter. `after` is the `Next` of an answer: for the next page.
    """

    job_order_state: tuple[StateQuery, ...]
    after: str | None = None


class ResponseAnswer(Payload, frozen=True, kw_only=True):
    """The output arguments of RequestJobResponseByJobOrderID; without a response, `reason` says why.

    Example: {"ReturnStatus": 1, "JobResponse": "…"}
    """

    job_response: JobResponse | None = None
    return_status: int
    reason: str | None = None


class ResponsesAnswer(Payload, frozen=True, kw_only=True):
    """The output arguments of RequestJobResponseByJobOrderState.

    `next` is set when the answer holds one page of several: the same call with `After` = `Next` returns the next one.

    Example: {"ReturnStatus": 1, "JobResponses": "…"}
    """

    job_responses: tuple[JobResponse, ...]
    return_status: int
    next: str | None = None
    reason: str | None = None


_P = TypeVar("_P")

_OPAQUE = frozenset({"Value", "Data", "data"})
"""Members whose content is not ours: null in them is a value."""
_INSTANTS = frozenset({"StartTime", "EndTime", "Since", "Until"})


def read_payload(data: object, kind: type[_P]) -> _P:
    """Convert decoded data to a structure; null members of it count as absent, digits finer than microseconds too.

    Raises msgspec.ValidationError for data of another form.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        return msgspec.convert(_normalized(data), kind)


def _normalized(data: object) -> object:
    """Return data without null members, with instants to microseconds, and a BrowsePath of names as RelativePath."""
    if isinstance(data, list):
        return [_normalized(item) for item in data]
    if not isinstance(data, dict):
        return data
    members = {name: value for name, value in data.items() if value is not None}
    for name, value in members.items():
        if name == "BrowsePath" and isinstance(value, list):
            members[name] = {"Elements": [_element(item) for item in value]}
        elif name in _INSTANTS and isinstance(value, str):
            members[name] = to_microseconds(value)
        elif name not in _OPAQUE:
            members[name] = _normalized(value)
    return members


def _element(name: object) -> object:
    """Return an element of a RelativePath for a name in the form of releases before 0.4."""
    if not isinstance(name, dict):
        return name
    namespace = name.get("NamespaceUri") or name.get("NamespaceURI")
    return {"TargetName": f"nsu={namespace};{name.get('Name')}" if namespace else name.get("Name")}
