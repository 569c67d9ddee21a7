"""The reason of a refused call, as node-opcua reads it from the diagnostics of the answer."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from asyncua import ua
from asyncua.ua.ua_binary import struct_to_binary

from edge.foundation.errors import Unavailable
from edge.model.isa95 import ReturnStatus
from edge.model.user import Role
from edge.opcua.call_diagnostics import MOST_CHARACTERS, ExplainedResult, encode_diagnostics
from edge.station.job_call import CallAnswer, JobCall
from edge.uaserver.namespaces import machines_uri
from tests.uaserver.other_stack import OtherStack, node, other_stack
from tests.uaserver.running import MACHINES, UA, Station, served

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOCALIZED_TEXT, ADDITIONAL_INFO = 0x40, 0x80
GERMAN = "Zelle 2 wird umgebaut"
REFUSED = CallAnswer(ReturnStatus.UNABLE_TO_ACCEPT_JOB_ORDER, (GERMAN,))


class Refusing(Station):
    """A station whose answers are those of `answers`, the first one first."""

    answers: list[CallAnswer]

    async def call(self, call: JobCall) -> CallAnswer:
        await super().call(call)
        return self.answers.pop(0)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def station() -> Refusing:
    return Refusing()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def other(station: Refusing) -> AsyncIterator[OtherStack]:
    async with (
        served(machines=MACHINES[:1], station=station, role=Role.ENGINEER) as server,
        other_stack(server.endpoint) as client,
    ):
        yield client


async def start(other: OtherStack, wanted: int, count: int = 1) -> Any:
    """Call Start and return the response of the service."""
    jobs, machinery = f"{UA}Machinery/Jobs/", f"{UA}Machinery/"
    machine = [f"{machinery} Machines", f"{machines_uri('edge')} station-1", f"{machinery} MachineryBuildingBlocks"]
    path = [*machine, f"{jobs} JobManagement", f"{jobs} JobOrderControl"]
    receiver = await other.send("find", **{"from": "i=85", "path": path})
    method = await other.send("find", **{"from": receiver, "path": [f"{UA}ISA95-JOBCONTROL_V2/ Start"]})
    arguments = [{"$": "Variant", "dataType": "String", "value": "J1"}, {"$": "Variant"}]
    call = {"objectId": node(receiver), "methodId": node(method), "inputArguments": arguments}
    header = {"returnDiagnostics": wanted}
    return await other.send("Call", requestHeader=header, methodsToCall=[call] * count)


async def test_client_reads_the_reason_of_a_refusal(other: OtherStack, station: Refusing) -> None:
    station.answers = [REFUSED]
    response = await start(other, LOCALIZED_TEXT | ADDITIONAL_INFO)
    (result,), (diagnostic,) = response["results"], response["diagnosticInfos"]
    assert result["statusCode"] == "Uncertain"
    assert response["responseHeader"]["stringTable"][diagnostic["localizedText"]] == GERMAN
    assert diagnostic["additionalInfo"] == GERMAN
    assert diagnostic["locale"] == -1


async def test_reasons_of_several_calls_are_at_their_indexes(other: OtherStack, station: Refusing) -> None:
    station.answers = [REFUSED, CallAnswer(ReturnStatus.NO_ERROR), CallAnswer(ReturnStatus.INVALID_REQUEST, ("no",))]
    response = await start(other, LOCALIZED_TEXT, 3)
    table, infos = response["responseHeader"]["stringTable"], response["diagnosticInfos"]
    assert [table[info["localizedText"]] if info["localizedText"] >= 0 else "" for info in infos] == [GERMAN, "", "no"]


async def test_answer_without_requested_diagnostics_has_none(other: OtherStack, station: Refusing) -> None:
    station.answers = [REFUSED]
    response = await start(other, 0x3F)
    assert not response["diagnosticInfos"]
    assert not response["responseHeader"]["stringTable"]


async def test_reason_of_an_unavailable_store_is_reported(other: OtherStack, station: Refusing) -> None:
    station.failure = Unavailable("Redis does not answer")
    try:
        response = await start(other, ADDITIONAL_INFO)
    finally:
        station.failure = None
    assert response["results"][0]["statusCode"] == "BadResourceUnavailable"
    assert response["diagnosticInfos"][0]["additionalInfo"] == "Redis does not answer"


async def test_reason_is_bounded_and_not_part_of_the_result() -> None:
    result = ua.CallMethodResult(StatusCode=ua.StatusCode(ua.StatusCodes.Uncertain))
    explained = ExplainedResult(result, "x" * (MOST_CHARACTERS + 1))
    assert len(explained.reason) == MOST_CHARACTERS
    assert struct_to_binary(explained) == struct_to_binary(result)
    assert encode_diagnostics([explained], 0) == ([], bytes(4))
    assert encode_diagnostics([ExplainedResult(result, "a")] * 2, LOCALIZED_TEXT)[0] == ["a"]
