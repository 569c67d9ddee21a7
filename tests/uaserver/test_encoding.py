"""The table of structures against the official definitions, and against the independent codec of asyncua."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from asyncua import Client, ua
from asyncua.common.utils import Buffer
from asyncua.ua.ua_binary import extensionobject_from_binary, extensionobject_to_binary, struct_to_binary

from edge.model.isa95 import (
    Equipment,
    EUInformation,
    JobOrder,
    JobOrderAndState,
    JobResponse,
    LocalizedText,
    Material,
    Parameter,
    Payload,
    Personnel,
    PhysicalAsset,
    Property,
    RelativePath,
    RelativePathElement,
    State,
    WorkMaster,
)
from edge.model.job_state import JobState, JobStatus, SubState, state_entries
from edge.opcua.binary import MAX_DEPTH, DecodeError
from edge.uaserver.encoding import ENCODING_ID, STRUCTURES, decode_structure, extension_object
from edge.uaserver.namespaces import Namespace

# The client has generated asyncua's classes from the definitions of the server: they decode what the table encodes.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("client")]

DATA_TYPE = {
    Equipment: 3005,
    JobOrder: 3008,
    JobOrderAndState: 3015,
    JobResponse: 3013,
    Material: 3010,
    Parameter: 3003,
    Personnel: 3011,
    PhysicalAsset: 3012,
    Property: 3002,
    State: 3006,
    WorkMaster: 3007,
}

UNIT = EUInformation(
    namespace_uri="http://www.opcfoundation.org/UA/units/un/cefact",
    unit_id=20053,
    display_name=LocalizedText(text="N·m", locale="en"),
    description=LocalizedText(text="newton metre"),
)
TEXTS = (LocalizedText(text="Hinterachse", locale="de"), LocalizedText(text="rear axle"), LocalizedText())
LEAF = Parameter(id="tolerance", value=[1, 2.5], engineering_units=UNIT)
NESTED = Parameter(id="torque", value=42.5, description=TEXTS, engineering_units=UNIT, subparameters=(LEAF,))
PROPERTIES = (Property(id="colour", value="red", subproperties=(Property(id="gloss", value=True),)),)
ORDER = JobOrder(
    job_order_id="job-1",
    description=TEXTS,
    work_master_id=(WorkMaster(id="rear-axle", description=TEXTS[0], parameters=(NESTED,)),),
    start_time=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    end_time=datetime(2026, 1, 2, 5, 4, 5, tzinfo=timezone(timedelta(hours=2))),
    priority=-3,
    job_order_parameters=(NESTED, LEAF),
    personnel_requirements=(Personnel(id="fitter", personnel_use="x", quantity="1", properties=PROPERTIES),),
    equipment_requirements=(Equipment(id="e", equipment_use="y", quantity="2.50", engineering_units=UNIT),),
    physical_asset_requirements=(PhysicalAsset(id="a", physical_asset_use="z", description=TEXTS),),
    material_requirements=(
        Material(
            material_class_id="bolt",
            material_definition_id="M12",
            material_lot_id="L1",
            material_sublot_id="S1",
            description=TEXTS,
            material_use="consumed",
            quantity="4",
            engineering_units=UNIT,
            properties=PROPERTIES,
        ),
    ),
)


def decoded(value: Payload) -> Any:
    """Return a structure as decoded by asyncua, with its classes for the DataTypeDefinitions of the server."""
    return extensionobject_from_binary(Buffer(extensionobject_to_binary(extension_object(value))))


def plain(value: Any) -> Any:
    """Convert a value of asyncua to the form of `msgspec.to_builtins`: no absent fields, encoded field names."""
    match value:
        case ua.Variant():
            return plain(value.Value)
        case ua.LocalizedText():
            return {name: text for name, text in (("Text", value.Text), ("Locale", value.Locale)) if text}
        case ua.RelativePath():
            return [{"Name": e.TargetName.Name, "NamespaceUri": e.TargetName.NamespaceIndex} for e in value.Elements]
        case list():
            return [plain(item) for item in value]
        case datetime():
            return value.astimezone(UTC)
        case _ if hasattr(value, "__dataclass_fields__"):
            names = [name for name in value.__dataclass_fields__ if name != "Encoding"]
            return {name: plain(getattr(value, name)) for name in names if getattr(value, name) is not None}
        case _:
            return value


def expected(value: Any) -> Any:
    match value:
        case dict():
            return {name: expected(item) for name, item in value.items()}
        case list() | tuple():
            return [expected(item) for item in value]
        case datetime():
            return value.astimezone(UTC)
        case _:
            return value


def travelling(value: Payload) -> Any:
    return expected(msgspec.to_builtins(value, builtin_types=(datetime,)))


@pytest.mark.parametrize("structure", DATA_TYPE, ids=lambda structure: structure.__name__)
async def test_structure_table_equals_the_official_definition(client: Client, structure: type[Payload]) -> None:
    node = client.get_node(ua.NodeId(DATA_TYPE[structure], Namespace.ISA95))
    definition = await node.read_data_type_definition()
    spelling = {field.name: field.encode_name for field in msgspec.structs.fields(structure)}
    assert [(spelling[field.name], field.optional) for field in STRUCTURES[structure].fields] == [
        (field.Name, field.IsOptional) for field in definition.Fields
    ]
    if structure in ENCODING_ID:
        assert ENCODING_ID[structure] == definition.DefaultEncodingId


async def test_order_with_every_field_is_unchanged_after_decoding() -> None:
    order = decoded(ORDER)
    assert type(order).__name__ == "ISA95JobOrderDataType"
    assert plain(order) == travelling(ORDER)


async def test_order_without_optional_fields_is_unchanged_after_decoding() -> None:
    assert plain(decoded(JobOrder(job_order_id="job-1"))) == {"JobOrderID": "job-1"}


async def test_response_is_unchanged_after_decoding() -> None:
    response = JobResponse(
        job_response_id="r",
        description=TEXTS[0],
        job_order_id="job-1",
        start_time=ORDER.start_time,
        end_time=ORDER.end_time,
        job_state=(State(state_text=TEXTS[1], state_number=5),),
        job_response_data=(NESTED,),
        personnel_actuals=ORDER.personnel_requirements,
        equipment_actuals=ORDER.equipment_requirements,
        physical_asset_actuals=ORDER.physical_asset_requirements,
        material_actuals=ORDER.material_requirements,
    )
    read = plain(decoded(response))
    assert read["JobState"][0].pop("BrowsePath") == []
    assert read == travelling(response)


async def test_state_names_its_sub_state_machine_by_the_namespace_index() -> None:
    job_order_and_state = JobOrderAndState(
        job_order=ORDER, state=state_entries(JobStatus(JobState.ENDED, SubState.COMPLETED))
    )
    top, sub = decoded(job_order_and_state).State
    assert (top.StateText.Text, top.StateNumber, top.BrowsePath.Elements) == ("Ended", 5, [])
    (element,) = sub.BrowsePath.Elements
    assert (sub.StateText.Text, sub.StateNumber) == ("Completed", 1)
    assert element.TargetName == ua.QualifiedName("EndedSubstates", Namespace.ISA95)
    assert element.ReferenceTypeId == ua.NodeId(ua.ObjectIds.HasComponent)
    assert (element.IsInverse, element.IncludeSubtypes) == (False, True)


async def test_recipe_is_not_encoded_with_its_work_master() -> None:
    assert plain(decoded(WorkMaster(id="w", data={"steps": []}, dataschema="urn:sfc"))) == {"ID": "w"}


@pytest.mark.parametrize(("wanted", "written"), [(70_000, 32_767), (-70_000, -32_768), (7, 7)])
async def test_number_out_of_range_is_clamped(wanted: int, written: int) -> None:
    assert decoded(JobOrder(job_order_id="j", priority=wanted)).Priority == written


class TestReading:
    async def test_order_encoded_by_asyncua_is_decoded(self) -> None:
        written = ua.ExtensionObject(TypeId=ENCODING_ID[JobOrder], Body=struct_to_binary(decoded(ORDER)))
        assert decode_structure(JobOrder, written) == ORDER

    @pytest.mark.parametrize("order", [ORDER, JobOrder(job_order_id="job-1"), JobOrder(job_order_id="")])
    async def test_order_is_encoded_with_the_received_bytes(self, order: JobOrder) -> None:
        came = extension_object(order)
        assert extension_object(decode_structure(JobOrder, came)).Body == came.Body

    async def test_states_and_their_paths_are_read(self) -> None:
        for state in state_entries(JobStatus(JobState.ENDED, SubState.COMPLETED)):
            assert decode_structure(State, extension_object(state)) == state

    async def test_structure_of_another_type_is_not_decoded_as_an_order(self) -> None:
        state = extension_object(state_entries(JobStatus(JobState.ENDED))[0])
        for content in (state, None, "job-1", ua.ExtensionObject()):
            with pytest.raises(DecodeError, match="not a JobOrder"):
                decode_structure(JobOrder, content)

    async def test_truncated_order_is_unreadable(self) -> None:
        body = extension_object(ORDER).Body
        for length in range(len(body)):
            with pytest.raises(DecodeError):
                decode_structure(JobOrder, ua.ExtensionObject(TypeId=ENCODING_ID[JobOrder], Body=body[:length]))

    async def test_order_followed_by_extra_bytes_is_unreadable(self) -> None:
        body = extension_object(ORDER).Body
        with pytest.raises(DecodeError, match="1 bytes after the end"):
            decode_structure(JobOrder, ua.ExtensionObject(TypeId=ENCODING_ID[JobOrder], Body=body + b"x"))

    async def test_parameters_nested_beyond_the_limit_are_unreadable(self) -> None:
        with pytest.raises(DecodeError, match=f"more than {MAX_DEPTH} levels deep"):
            decode_structure(JobOrder, extension_object(nested(200)))
        decode_structure(JobOrder, extension_object(nested(MAX_DEPTH // 2)))


def nested(depth: int) -> JobOrder:
    parameter = Parameter(id="p")
    for _ in range(depth):
        parameter = Parameter(id="p", subparameters=(parameter,))
    return JobOrder(job_order_id="j", job_order_parameters=(parameter,))


async def test_browse_paths_through_unknown_namespaces_are_refused() -> None:
    path = RelativePath(elements=(RelativePathElement(target_name="x"),))
    state = State(browse_path=path, state_text=LocalizedText(text="x"), state_number=1)
    encoded = extension_object(state)
    foreign = ua.ExtensionObject(encoded.TypeId, encoded.Body.replace(b"\0\1\0\0", b"\0\1\x4d\0"))
    with pytest.raises(DecodeError, match="namespace 77"):
        decode_structure(State, foreign)
