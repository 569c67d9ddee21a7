"""A session with a simulated controller: negotiation, requests, messages of the controller, and lost connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.mids import Mid, new_message, parse_message
from edge.features.openprotocol.protocol.session import (
    DeclinedError,
    OpenProtocolSession,
    SessionTimes,
    UnansweredError,
    open_openprotocol,
)
from edge.features.openprotocol.simulated.controller import TighteningController, open_openprotocol_controller
from edge.foundation.errors import Refused, Unavailable
from edge.model.equipment_connection import ConnectionFault
from tests.conftest import WaitUntil

HOST = "127.0.0.1"


@asynccontextmanager
async def connected(controller: TighteningController, *, link_layer: bool = True) -> AsyncIterator[OpenProtocolSession]:
    async with open_openprotocol(HOST, controller.server.port, link_layer=link_layer) as session:
        yield session


@pytest.mark.parametrize("link_layer", [True, False])
async def test_result_is_received_with_and_without_link_layer(*, link_layer: bool) -> None:
    async with open_openprotocol_controller(delay=0.0) as controller:
        async with connected(controller, link_layer=link_layer) as session:
            assert session.has_link_layer is link_layer
            await session.negotiate(Mid.RESULT_SUBSCRIBE, (2, 1))
            await session.request(new_message(Mid.SELECT_PARAMETER_SET, id=3))
            await session.request(MidFrame(Mid.ENABLE_TOOL))
            message = await anext(session.messages())
            assert (message.revision, parse_message(message)["torque"]) == (2, 85.2)
            await session.send(MidFrame(Mid.RESULT_ACKNOWLEDGE))
            await session.request(MidFrame(Mid.TOOL), {Mid.TOOL_REPLY})
        assert controller.acknowledged == [1]


async def test_newest_common_revision_is_negotiated_once() -> None:
    async with open_openprotocol_controller(link_layer=False) as controller:
        controller.server.highest |= {Mid.START: 3, Mid.OLD_RESULT: 1}
        controller.end_tightening()
        async with connected(controller) as session:
            assert (session.revisions[Mid.START], session.controller["supplier"]) == (3, "ACT")
            assert session.controller["sequence_numbers"] is None
            for _ in range(2):
                await session.negotiate(Mid.OLD_RESULT, (6, 1), answers={Mid.OLD_RESULT_REPLY}, result=0)
            assert session.revisions[Mid.OLD_RESULT] == 1
        asked = [mid_frame.revision for mid_frame in controller.server.received if mid_frame.mid == Mid.OLD_RESULT]
        assert asked == [6, 1, 1]


async def test_declined_message_is_reported_with_the_reason() -> None:
    async with open_openprotocol_controller() as controller, connected(controller) as session:
        with pytest.raises(DeclinedError, match="MID 0018 declined: there is no such parameter set") as caught:
            await session.request(new_message(Mid.SELECT_PARAMETER_SET, id=99))
        assert caught.value.error == 2
        controller.server.missing = {Mid.ENABLE_TOOL}
        with pytest.raises(DeclinedError, match="the message is not known"):
            await session.request(MidFrame(Mid.ENABLE_TOOL))


async def test_concurrent_requests_get_their_own_answers() -> None:
    async with open_openprotocol_controller() as controller, connected(controller) as session:
        ids, jobs, tool = await asyncio.gather(
            session.request(MidFrame(Mid.PARAMETER_SETS), {Mid.PARAMETER_SETS_REPLY}),
            session.request(MidFrame(Mid.JOBS), {Mid.JOBS_REPLY}),
            session.request(MidFrame(Mid.TOOL), {Mid.TOOL_REPLY}),
        )
    assert [mid_frame.mid for mid_frame in (ids, jobs, tool)] == [11, 31, 41]


async def test_controller_that_cannot_be_reached_is_unavailable() -> None:
    async with open_openprotocol_controller() as controller:
        port = controller.server.port
    with pytest.raises(Unavailable, match=f"cannot connect to {HOST}:{port}"):
        async with open_openprotocol(HOST, port):
            pass


async def test_lost_connection_ends_message_stream_and_requests() -> None:
    async def use(controller: TighteningController) -> None:
        async with connected(controller) as session:
            async with controller.server.unplugged():
                assert [message async for message in session.messages()] == []
            await session.request(MidFrame(Mid.ENABLE_TOOL))

    async with open_openprotocol_controller(delay=None) as controller:
        with pytest.raises(Unavailable):
            await use(controller)


async def test_stop_at_the_session_end_permits_the_next_connection() -> None:
    async with open_openprotocol_controller() as controller:
        async with connected(controller):
            pass
        async with connected(controller) as session:
            assert session.controller["name"] == "wrench"


@asynccontextmanager
async def stranger(answer: bytes) -> AsyncIterator[int]:
    """Serve something that answers each message with the same bytes; yield its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is not a number"),
        (b"00260004001         000196\0", "another client is connected already"),
        (b"00300002001         0100100201\0", "MID 0002 revision"),
        (b"", "no answer within"),
    ],
)
async def test_foreign_server_is_refused_or_unavailable(answer: bytes, expected: str) -> None:
    async with stranger(answer) as port:
        with pytest.raises((Unavailable, Refused), match=expected):
            async with open_openprotocol(HOST, port, times=SessionTimes(answer=60.0 if answer else 0.2)):
                pass


async def test_silent_controller_is_detected_as_a_lost_connection(wait_until: WaitUntil) -> None:
    times = SessionTimes(keep_alive=0.05, silence=60.0)
    async with (
        open_openprotocol_controller() as controller,
        open_openprotocol(HOST, controller.server.port, times=times),
    ):
        await wait_until(lambda: sum(mid_frame.mid == Mid.KEEP_ALIVE for mid_frame in controller.server.received) > 2)
    async with stranger(b"00570002001         010001020103" + b"x" * 25 + b"\0") as port:
        with pytest.raises(Unavailable, match="silent"):
            async with open_openprotocol(HOST, port, times=SessionTimes(keep_alive=9.0, silence=0.2)):
                await asyncio.sleep(10)


def test_declined_message_is_named_with_its_reason() -> None:
    assert DeclinedError(64, 15).message == "MID 0064 declined: there is no such result"
    assert DeclinedError(43, 250).message == "MID 0043 declined: error 250"


def test_unanswered_message_is_a_silent_controller() -> None:
    error = UnansweredError(42, 5.0)
    assert (error.message, error.fault) == ("MID 0042: no answer within 5 s", ConnectionFault.SILENT)
