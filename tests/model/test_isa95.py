"""The ISA-95 data types have OPC UA member names and are encoded without loss."""

from datetime import UTC, datetime

import msgspec
import pytest

from edge.model.isa95 import (
    EUInformation,
    IdCall,
    JobOrder,
    JobResponse,
    LocalizedText,
    Material,
    MethodAnswer,
    OrderCall,
    Parameter,
    ReturnStatus,
    State,
    WorkMaster,
    opcua_name,
    read_payload,
)
from edge.model.job_state import substate_path

ORDER = JobOrder(
    job_order_id="J1",
    description=(LocalizedText(text="Achse", locale="de"),),
    work_master_id=(WorkMaster(id="axle", data={"steps": []}, dataschema="x"),),
    start_time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    priority=3,
    job_order_parameters=(
        Parameter(
            id="torque",
            value=12.5,
            engineering_units=EUInformation(unit_id=20053, display_name=LocalizedText(text="N·m")),
            subparameters=(Parameter(id="low", value=11), Parameter(id="list", value=[1, "x", None])),
        ),
    ),
    material_requirements=(Material(material_definition_id="M8", quantity="4.0"),),
)


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("job_order_id", "JobOrderID"),
        ("id", "ID"),
        ("work_master_id", "WorkMasterID"),
        ("start_time", "StartTime"),
        ("material_sublot_id", "MaterialSublotID"),
        ("return_status", "ReturnStatus"),
    ],
)
def test_a_field_is_spelled_as_in_opc_ua(field: str, name: str) -> None:
    assert opcua_name(field) == name


def test_an_order_has_opc_ua_spelling_without_absent_fields() -> None:
    travelling = msgspec.json.decode(msgspec.json.encode(ORDER))
    assert set(travelling) == {
        "JobOrderID",
        "Description",
        "WorkMasterID",
        "StartTime",
        "Priority",
        "JobOrderParameters",
        "MaterialRequirements",
    }
    assert travelling["WorkMasterID"] == [{"ID": "axle", "data": {"steps": []}, "dataschema": "x"}]
    assert travelling["JobOrderParameters"][0]["EngineeringUnits"]["UnitId"] == 20053


@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_order_is_unchanged_after_encoding_and_decoding(form: str) -> None:
    codec = msgspec.json if form == "json" else msgspec.msgpack
    assert codec.decode(codec.encode(ORDER), type=JobOrder) == ORDER


def test_unknown_fields_of_an_order_are_ignored() -> None:
    assert msgspec.json.decode(b'{"JobOrderID": "J1", "Colour": "red"}', type=JobOrder) == JobOrder(job_order_id="J1")


@pytest.mark.parametrize(
    "payload",
    [
        b"{}",
        b'{"JobOrderID": 5}',
        b'{"JobOrderID": "J1", "Priority": "high"}',
        b'{"JobOrderID": "J1", "WorkMasterID": {}}',
    ],
)
def test_invalid_order_is_refused(payload: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(payload, type=JobOrder)


def test_calls_name_their_arguments_as_the_standard_does() -> None:
    call = msgspec.json.decode(b'{"JobOrder": {"JobOrderID": "J1"}, "Comment": [{"Text": "go"}]}', type=OrderCall)
    assert call == OrderCall(job_order=JobOrder(job_order_id="J1"), comment=(LocalizedText(text="go"),))
    assert msgspec.json.decode(b'{"JobOrderID": "J1"}', type=IdCall) == IdCall(job_order_id="J1")
    assert msgspec.json.encode(MethodAnswer(return_status=ReturnStatus.NO_ERROR)) == b'{"ReturnStatus":1}'


def test_return_status_has_the_bits_of_table_95() -> None:
    assert {status.name: status.value for status in ReturnStatus} == {
        "NO_ERROR": 1,
        "UNKNOWN_JOB_ORDER_ID": 2,
        "INVALID_JOB_ORDER_STATUS": 8,
        "UNABLE_TO_ACCEPT_JOB_ORDER": 16,
        "INVALID_REQUEST": 0x1_0000_0000,
        "AWAITS_SECOND_PERSON": 0x4_0000_0000,
    }


def test_response_is_unchanged_after_encoding_and_decoding() -> None:
    path = substate_path("EndedSubstates")
    response = JobResponse(
        job_response_id="r",
        job_order_id="J1",
        end_time=datetime(2026, 1, 2, tzinfo=UTC),
        job_state=(
            State(state_text=LocalizedText(text="Ended"), state_number=5),
            State(state_text=LocalizedText(text="Completed"), state_number=1, browse_path=path),
        ),
    )
    assert msgspec.json.decode(msgspec.json.encode(response), type=JobResponse) == response


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("9999-12-31T23:59:59.9999999Z", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999999Z", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_order_may_end_at_the_ends_of_the_calendar(text: str, instant: datetime) -> None:
    """The largest instant of .NET stands for "no end": its seventh digit was rounded up, beyond the year 9999."""
    parameter = {"ID": "at", "Value": text}
    order = read_payload(
        {"JobOrderID": "J1", "StartTime": text, "EndTime": text, "JobOrderParameters": [parameter]}, JobOrder
    )
    assert (order.start_time, order.end_time) == (instant, instant)
    assert [item.value for item in order.job_order_parameters or ()] == [text]


@pytest.mark.parametrize("text", ["2026-02-30T00:00:00Z", "", "10000-01-01T00:00:00Z", "2026-11-26"])
def test_text_that_is_not_an_instant_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_payload({"JobOrderID": "J1", "StartTime": text}, JobOrder)
