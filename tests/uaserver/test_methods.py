"""The job methods, called by clients over a real connection to a fake station."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from asyncua import Node, ua
from asyncua.ua.ua_binary import struct_from_binary, struct_to_binary

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.model.isa95 import IdCall, JobOrder, LocalizedText, OrderCall, Parameter, ReturnStatus, State
from edge.model.job_state import METHODS, RESPONSE_METHODS, Cause, JobState, JobStatus, SubState, state_entries
from edge.model.user import Role
from edge.opcua.call_diagnostics import Wanted
from edge.uaserver.encoding import extension_object
from tests.opcua_client import patient_client
from tests.uaserver.running import UA, Space, Station, response, served
from tests.uaserver.test_encoding import ORDER
from tests.uaserver.test_maintenance_object import speaking

pytestmark = pytest.mark.asyncio(loop_scope="module")

T = ua.VariantType
COMMENT = ua.Variant([ua.LocalizedText("Schicht 2", "de")], T.LocalizedText, is_array=True)
NO_COMMENT = ua.Variant([], T.LocalizedText, is_array=True)
JOB = ua.Variant("job-1", T.String)
TAKES_ORDER = ("Store", "StoreAndStart", "Update")
TAKES_ID = tuple(method.value for method in METHODS if method.value not in TAKES_ORDER)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def behind() -> Station:
    return Station()


@pytest.fixture
def station(behind: Station) -> Station:
    """The fake station, reset before each test."""
    behind.reset()
    return behind


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engineer(behind: Station) -> AsyncIterator[Space]:
    async with (
        served(station=behind, role=Role.ENGINEER) as server,
        patient_client(server.endpoint) as client,
    ):
        await client.load_data_type_definitions()
        yield Space(client, await client.get_namespace_array())


async def part(space: Space, name: str, scope: str = "station-1") -> Node:
    management = await space.job_management(scope)
    return await management.get_child([space.name(name, UA + "Machinery/Jobs/")])


async def ask(
    space: Space, name: str, *arguments: ua.Variant, scope: str = "station-1", of_type: bool = False
) -> ua.CallMethodResult:
    """Call a method and return its result."""
    owner = await part(space, "JobOrderResults" if name in RESPONSE_METHODS else "JobOrderControl", scope)
    method = await owner.get_child([space.name(name, UA + "ISA95-JOBCONTROL_V2/")])
    if of_type:
        kinds = {"JobOrderControl": 1002, "JobOrderResults": 1003}  # for the receiver, a supertype of its type
        declared = kinds[(await owner.read_browse_name()).Name]
        kind = space.client.get_node(ua.NodeId(declared, space.index[UA + "ISA95-JOBCONTROL_V2/"]))
        method = await kind.get_child([space.name(name, UA + "ISA95-JOBCONTROL_V2/")])
    request = ua.CallMethodRequest(ObjectId=owner.nodeid, MethodId=method.nodeid, InputArguments=list(arguments))
    (result,) = await space.client.uaclient.call([request])
    return result


def order_argument(order: JobOrder = ORDER) -> ua.Variant:
    return ua.Variant(extension_object(order), T.ExtensionObject)


def plain(result: ua.CallMethodResult) -> tuple[int, list[Any]]:
    return result.StatusCode.value, [(output.VariantType, output.Value) for output in result.OutputArguments]


class TestReceiver:
    @pytest.mark.parametrize("called_by", ["its own id", "the id of its type"])
    @pytest.mark.parametrize("name", TAKES_ORDER)
    async def test_order_reaches_the_station_with_all_fields(
        self, engineer: Space, station: Station, name: str, called_by: str
    ) -> None:
        result = await ask(engineer, name, order_argument(), COMMENT, of_type=called_by == "the id of its type")
        assert plain(result) == (0, [(T.UInt64, 1)])
        (call,) = station.calls
        assert (call.scope, call.method) == ("station-1", Cause(name))
        assert call.arguments == OrderCall(job_order=ORDER, comment=(LocalizedText(text="Schicht 2", locale="de"),))

    @pytest.mark.parametrize("called_by", ["its own id", "the id of its type"])
    @pytest.mark.parametrize("name", TAKES_ID)
    async def test_method_with_an_order_id_reaches_the_station(
        self, engineer: Space, station: Station, name: str, called_by: str
    ) -> None:
        result = await ask(engineer, name, JOB, COMMENT, scope="station-2", of_type=called_by == "the id of its type")
        assert plain(result) == (0, [(T.UInt64, 1)])
        (call,) = station.calls
        assert (call.scope, call.method) == ("station-2", Cause(name))
        assert str(call.by) == "anonymous over OPC UA"
        assert call.arguments == IdCall(job_order_id="job-1", comment=(LocalizedText(text="Schicht 2", locale="de"),))

    @pytest.mark.parametrize("comment", [NO_COMMENT, ua.Variant()], ids=["empty", "null"])
    async def test_empty_comment_is_accepted(self, engineer: Space, station: Station, comment: ua.Variant) -> None:
        await ask(engineer, "Start", JOB, comment)
        assert station.calls[0].arguments == IdCall(job_order_id="job-1")

    async def test_repeated_call_has_its_own_event_id(self, engineer: Space, station: Station) -> None:
        for _ in range(2):
            await ask(engineer, "Start", JOB, NO_COMMENT)
        job_call, other = station.calls
        assert (job_call.source, job_call.event_id) != (other.source, other.event_id)

    @pytest.mark.parametrize(
        "status", [return_status for return_status in ReturnStatus if return_status is not ReturnStatus.NO_ERROR]
    )
    async def test_refused_call_is_uncertain_with_its_return_status(
        self, engineer: Space, station: Station, status: ReturnStatus
    ) -> None:
        station.status = status
        result = await ask(engineer, "Start", JOB, NO_COMMENT)
        assert plain(result) == (ua.StatusCodes.Uncertain, [(T.UInt64, status.value)])

    async def test_call_without_a_store_returns_resource_unavailable(self, engineer: Space, station: Station) -> None:
        station.failure = Unavailable("Redis does not answer")
        result = await ask(engineer, "Start", JOB, NO_COMMENT)
        assert plain(result) == (ua.StatusCodes.BadResourceUnavailable, [])


async def test_reason_of_a_refusal_is_in_the_language_of_the_session(station: Station) -> None:
    station.failure = Unavailable(Text.of("there is no job order {job_id!r}", job_id="J1"))
    async with served(station=station, role=Role.ENGINEER) as server, speaking(server, "it", "de-AT") as client:
        space = Space(client, await client.get_namespace_array())
        owner = await part(space, "JobOrderControl")
        method = await owner.get_child([space.name("Start", UA + "ISA95-JOBCONTROL_V2/")])
        asked = ua.CallRequest()
        asked.RequestHeader.ReturnDiagnostics = Wanted.ADDITIONAL_INFO
        asked.Parameters.MethodsToCall = [
            ua.CallMethodRequest(ObjectId=owner.nodeid, MethodId=method.nodeid, InputArguments=[JOB, NO_COMMENT])
        ]
        response = struct_from_binary(ua.CallResponse, await client.uaclient.protocol.send_request(asked))
    assert response.DiagnosticInfos[0].AdditionalInfo == "es gibt keinen Auftrag 'J1'"


class TestProvider:
    async def test_request_by_id_returns_the_response_of_the_job(self, engineer: Space, station: Station) -> None:
        station.responses = (response("job-1"),)
        result = await ask(engineer, "RequestJobResponseByJobOrderID", JOB)
        given, status = result.OutputArguments
        assert (result.StatusCode.value, status.VariantType, status.Value) == (0, T.UInt64, 1)
        assert struct_to_binary(given.Value) == extension_object(response("job-1")).Body
        assert station.asked == [("station-1", "job-1")]

    async def test_unknown_job_returns_the_null_response(self, engineer: Space, station: Station) -> None:
        station.status = ReturnStatus.UNKNOWN_JOB_ORDER_ID
        result = await ask(engineer, "RequestJobResponseByJobOrderID", JOB)
        assert plain(result) == (
            ua.StatusCodes.Uncertain,
            [(T.ExtensionObject, ua.ExtensionObject()), (T.UInt64, 2)],
        )

    async def test_request_by_state_returns_the_responses(self, engineer: Space, station: Station) -> None:
        station.responses = (response("job-1"), response("job-2"))
        state = state_entries(JobStatus(JobState.ENDED, SubState.COMPLETED))
        wanted = ua.Variant([extension_object(item) for item in state], T.ExtensionObject, is_array=True)
        result = await ask(engineer, "RequestJobResponseByJobOrderState", wanted, scope="station-2")
        given, status = result.OutputArguments
        assert (result.StatusCode.value, status.Value) == (0, 1)
        assert [struct_to_binary(value) for value in given.Value] == [
            extension_object(job_response).Body for job_response in station.responses
        ]
        ((scope, asked),) = station.asked
        assert (scope, asked) == ("station-2", state)

    async def test_request_without_a_match_returns_an_empty_array(self, engineer: Space, station: Station) -> None:
        state = extension_object(State(state_text=LocalizedText(text="Ended"), state_number=5))
        wanted = ua.Variant([state], T.ExtensionObject, is_array=True)
        result = await ask(engineer, "RequestJobResponseByJobOrderState", wanted)
        assert plain(result) == (0, [(T.ExtensionObject, []), (T.UInt64, 1)])


WRONG = [
    ("Start", (), ua.StatusCodes.BadArgumentsMissing),
    ("Start", (JOB,), ua.StatusCodes.BadArgumentsMissing),
    ("Start", (JOB, NO_COMMENT, NO_COMMENT), ua.StatusCodes.BadTooManyArguments),
    ("RequestJobResponseByJobOrderID", (JOB, NO_COMMENT), ua.StatusCodes.BadTooManyArguments),
]
MISMATCHED = [
    ("Start", (ua.Variant(7, T.Int32), NO_COMMENT), [True, False]),
    ("Start", (ua.Variant(["job-1"], T.String, is_array=True), NO_COMMENT), [True, False]),
    ("Start", (JOB, ua.Variant("why", T.String)), [False, True]),
    ("Start", (JOB, ua.Variant(ua.LocalizedText("why"), T.LocalizedText)), [False, True]),
    ("Store", (JOB, NO_COMMENT), [True, False]),
    ("Store", (ua.Variant(extension_object(state_entries(JobStatus(JobState.ENDED))[0])), JOB), [True, True]),
    ("Store", (ua.Variant(ua.ExtensionObject(ua.NodeId(5014, 5), b"\xff\xff\xff\xff")), NO_COMMENT), [True, False]),
    ("RequestJobResponseByJobOrderState", (order_argument(),), [True]),
    ("RequestJobResponseByJobOrderState", (ua.Variant([order_argument().Value], is_array=True),), [True]),
]


class TestWrongCalls:
    @pytest.mark.parametrize(("name", "arguments", "code"), WRONG)
    async def test_wrong_number_of_arguments_is_refused(
        self, engineer: Space, station: Station, name: str, arguments: tuple[ua.Variant, ...], code: int
    ) -> None:
        result = await ask(engineer, name, *arguments)
        assert (result.StatusCode.value, station.calls) == (code, [])

    @pytest.mark.parametrize(("name", "arguments", "wrong"), MISMATCHED)
    async def test_argument_of_a_wrong_type_is_reported_at_its_index(
        self, engineer: Space, station: Station, name: str, arguments: tuple[ua.Variant, ...], wrong: list[bool]
    ) -> None:
        result = await ask(engineer, name, *arguments)
        assert result.StatusCode.value == ua.StatusCodes.BadInvalidArgument
        assert [value.value == ua.StatusCodes.BadTypeMismatch for value in result.InputArgumentResults] == wrong
        assert (station.calls, station.asked) == ([], [])

    async def test_method_on_another_object_is_refused(self, engineer: Space, station: Station) -> None:
        first, second = await part(engineer, "JobOrderControl"), await part(engineer, "JobOrderControl", "station-2")
        start = await first.get_child([engineer.name("Start", UA + "ISA95-JOBCONTROL_V2/")])
        objects = {
            second.nodeid: ua.StatusCodes.BadMethodInvalid,
            (await part(engineer, "JobOrderResults")).nodeid: ua.StatusCodes.BadMethodInvalid,
            ua.NodeId(ua.ObjectIds.Server): ua.StatusCodes.BadMethodInvalid,
            ua.NodeId("nowhere", 8): ua.StatusCodes.BadNodeIdUnknown,
        }
        requests = [ua.CallMethodRequest(node_id, start.nodeid, [JOB, NO_COMMENT]) for node_id in objects]
        results = await engineer.client.uaclient.call(requests)
        assert [result.StatusCode.value for result in results] == list(objects.values())
        assert station.calls == []


class TestRoles:
    @pytest.mark.parametrize("role", [Role.OBSERVER, Role.OPERATOR])
    async def test_method_above_the_role_of_the_user_is_refused(self, role: Role) -> None:
        station = Station()
        async with served(station=station, role=role) as server, patient_client(server.endpoint) as client:
            space = Space(client, await client.get_namespace_array())
            stored = await ask(space, "Store", order_argument(), NO_COMMENT)
            started = await ask(space, "Start", JOB, NO_COMMENT)
        assert stored.StatusCode.value == ua.StatusCodes.BadUserAccessDenied
        assert started.StatusCode.is_good() == (role is Role.OPERATOR)
        assert len(station.calls) == (1 if role is Role.OPERATOR else 0)


async def test_parameter_keeps_the_data_type_of_its_client(engineer: Space, station: Station) -> None:
    exact = ({"UaType": 6, "Value": 7}, {"UaType": 13, "Value": "2026-01-02T03:04:05Z"}, 42.5)
    parameters = tuple(Parameter(id=str(number), value=value) for number, value in enumerate(exact))
    given = order_argument(JobOrder(job_order_id="job-1", job_order_parameters=parameters))
    await ask(engineer, "Store", given, NO_COMMENT)
    arguments = station.calls[0].arguments
    assert isinstance(arguments, OrderCall)
    assert arguments.job_order.job_order_parameters == parameters
    assert extension_object(arguments.job_order) == given.Value
