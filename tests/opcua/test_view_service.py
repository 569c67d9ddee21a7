"""Browse returns pages, browse paths are bounded, and a wrong request gets the status of the specification."""

import asyncio
from collections.abc import AsyncIterator
from enum import IntEnum
from itertools import count

import pytest
import pytest_asyncio
from asyncua import Client, ua
from asyncua.ua.ua_binary import struct_to_binary

from edge.foundation.task_group import background_task
from edge.opcua import view_service
from edge.opcua.time_slices import Turns
from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client
from tests.uaserver.running import served


class UnknownDirection(IntEnum):
    SEVEN = 7


pytestmark = pytest.mark.asyncio(loop_scope="module")

TYPES = ua.NodeId(ua.ObjectIds.BaseObjectType)
OBJECTS = ua.NodeId(ua.ObjectIds.ObjectsFolder)
HIERARCHY = ua.NodeId(ua.ObjectIds.HierarchicalReferences)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[UaServer]:
    async with served() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(server: UaServer) -> AsyncIterator[Client]:
    async with patient_client(server.endpoint) as connected:
        yield connected


def browsing(node: ua.NodeId, page: int = 0, reference: ua.NodeId = HIERARCHY, count: int = 1) -> ua.BrowseParameters:
    asked = ua.BrowseDescription(node, ua.BrowseDirection.Forward, reference, True, 0, 63)
    parameters = ua.BrowseParameters(RequestedMaxReferencesPerNode=page, NodesToBrowse=[asked] * count)
    parameters.View.Timestamp = ua.get_win_epoch()
    return parameters


async def browse(client: Client, parameters: ua.BrowseParameters) -> ua.BrowseResult:
    (result,) = await client.uaclient.session.browse(parameters)
    return result


async def next_page(client: Client, point: bytes, *, release: bool = False) -> ua.BrowseResult:
    (result,) = await client.uaclient.session.browse_next(ua.BrowseNextParameters(release, [point]))
    return result


async def test_pages_contain_all_references_together(client: Client) -> None:
    whole = await browse(client, browsing(TYPES))
    result = await browse(client, browsing(TYPES, page=7))
    found = list(result.References)
    while result.ContinuationPoint:
        assert len(result.References) == 7
        result = await next_page(client, result.ContinuationPoint)
        found += result.References
    assert [value.NodeId for value in found] == [reference.NodeId for reference in whole.References]
    assert len(found) > 20


async def test_unknown_direction_fails_its_own_node_only(client: Client) -> None:
    """A direction of 7 ended the whole request."""
    wrong = ua.BrowseDescription(TYPES, UnknownDirection.SEVEN, HIERARCHY, True, 0, 63)
    parameters = browsing(TYPES)
    parameters.NodesToBrowse.insert(0, wrong)
    first, second = await client.uaclient.session.browse(parameters)
    assert first.StatusCode.value == ua.StatusCodes.BadBrowseDirectionInvalid
    assert second.StatusCode.is_good()
    assert second.References


async def test_continuation_point_is_valid_once_and_can_be_released(client: Client) -> None:
    first = await browse(client, browsing(TYPES, page=3))
    await next_page(client, first.ContinuationPoint)
    again = await next_page(client, first.ContinuationPoint)
    assert again.StatusCode.value == ua.StatusCodes.BadContinuationPointInvalid
    other = await browse(client, browsing(TYPES, page=3))
    assert (await next_page(client, other.ContinuationPoint, release=True)).StatusCode.is_good()
    assert (await next_page(client, other.ContinuationPoint)).StatusCode.is_bad()


async def test_oldest_continuation_point_is_released_for_a_new_one(client: Client) -> None:
    points = [
        (await browse(client, browsing(TYPES, page=1))).ContinuationPoint
        for _ in range(view_service.CONTINUATION_POINTS + 1)
    ]
    assert (await next_page(client, points[0])).StatusCode.is_bad()
    assert (await next_page(client, points[1])).StatusCode.is_good()


async def test_continuation_points_of_one_answer_are_not_released_by_it(client: Client) -> None:
    most = view_service.CONTINUATION_POINTS
    results = await client.uaclient.session.browse(browsing(TYPES, page=1, count=most + 10))
    assert [result.StatusCode.value for result in results[most:]] == [ua.StatusCodes.BadNoContinuationPoints] * 10
    points = [result.ContinuationPoint for result in results[:most]]
    pages = await client.uaclient.session.browse_next(ua.BrowseNextParameters(False, points))
    assert all(page.StatusCode.is_good() and page.References for page in pages)


async def test_unread_continuation_points_of_a_full_answer_stay_valid(client: Client) -> None:
    session = client.uaclient.session
    many = ua.NodeId(ua.ObjectIds.Structure)
    results = [value for _ in range(2) for value in await session.browse(browsing(many, page=30, count=20))]
    points = [result.ContinuationPoint for result in results]
    pages = await session.browse_next(ua.BrowseNextParameters(False, points))
    assert sum(len(page.References) for page in pages) == view_service.REFERENCES_PER_ANSWER
    assert (pages[-1].References, pages[-1].ContinuationPoint) == ([], points[-1])
    assert len((await next_page(client, points[-1])).References) == 30


async def test_answers_have_a_bounded_number_of_references(client: Client) -> None:
    results = await client.uaclient.session.browse(browsing(TYPES, count=100))
    assert sum(len(result.References) for result in results) <= view_service.REFERENCES_PER_ANSWER
    assert results[-1].StatusCode.value == ua.StatusCodes.BadNoContinuationPoints


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        (browsing(ua.NodeId("nowhere", 8)), ua.StatusCodes.BadNodeIdUnknown),
        (browsing(OBJECTS, reference=OBJECTS), ua.StatusCodes.BadReferenceTypeIdInvalid),
        (browsing(OBJECTS, reference=ua.NodeId("nothing", 8)), ua.StatusCodes.BadReferenceTypeIdInvalid),
    ],
)
async def test_wrong_browse_descriptions_get_their_status(
    client: Client, parameters: ua.BrowseParameters, code: int
) -> None:
    assert (await browse(client, parameters)).StatusCode.value == code


async def test_an_unknown_view_is_refused(client: Client) -> None:
    parameters = browsing(OBJECTS)
    parameters.View.ViewId = ua.NodeId("view", 8)
    with pytest.raises(ua.uaerrors.BadViewIdUnknown):
        await browse(client, parameters)


def path(*names: str, start: ua.NodeId = OBJECTS, reference: ua.NodeId = HIERARCHY) -> ua.BrowsePath:
    elements = [ua.RelativePathElement(reference, False, True, ua.QualifiedName(name)) for name in names]
    return ua.BrowsePath(start, ua.RelativePath(elements))


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (path("Server", "ServerStatus"), ua.StatusCodes.Good),
        (path("Server", "ServerStatus", reference=ua.NodeId()), ua.StatusCodes.Good),
        (path("Server", "Nothing"), ua.StatusCodes.BadNoMatch),
        (path("Server", reference=OBJECTS), ua.StatusCodes.BadNoMatch),
        (path(), ua.StatusCodes.BadNothingToDo),
        (path(""), ua.StatusCodes.BadBrowseNameInvalid),
        (path("Server", start=ua.NodeId("nowhere", 8)), ua.StatusCodes.BadNodeIdUnknown),
        (path(*["Server"] * (view_service.PATH_ELEMENTS + 1)), ua.StatusCodes.BadQueryTooComplex),
    ],
)
async def test_browse_paths_get_their_status(client: Client, asked: ua.BrowsePath, code: int) -> None:
    (result,) = await client.uaclient.session.translate_browsepaths_to_nodeids([asked])
    assert result.StatusCode.value == code


async def test_results_are_encoded_in_slices_as_asyncua_encodes_them() -> None:
    """A thousand references were encoded at once: eight browsing clients held the event loop for 18 ms each time."""
    references = [ua.ReferenceDescription(NodeId=ua.NodeId(number, 1), IsForward=True) for number in range(100)]
    results = [
        ua.BrowseResult(References=references),
        ua.BrowseResult(ua.StatusCode(ua.StatusCodes.BadNodeIdUnknown), b"point", []),
    ]
    clock = count(step=0.001)
    turns = Turns(slice_s=0.003, clock=lambda: next(clock))
    passes = 0

    async def others() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    async with background_task(others(), "others"), turns.work(turns.account("")) as turn:
        encoded = await view_service.encode_results(results, turn)
    turns.close()
    assert encoded == [bytes(struct_to_binary(result)) for result in results]
    assert passes >= 25
