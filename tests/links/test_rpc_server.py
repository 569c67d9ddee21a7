"""Many clients call concurrently; malformed or unread data of one client do not affect the others."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgpack
import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.config import RpcSettings
from edge.foundation.errors import Refused, Unavailable
from edge.links.rpc_server import RpcLimits, RpcServer, open_server
from edge.links.rpc_transport import Frames, Notification, Request, Response, connect, encode
from tests.conftest import WaitUntil
from tests.examples import examples

LOOPBACK = RpcSettings(listen="tcp://127.0.0.1:0")


class Plant:
    """Methods to call, and what became of the calls."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.done: list[Any] = []
        self.resume = asyncio.Event()
        self.methods = {
            "echo": self.echo,
            "wait": self.wait,
            "refuse": self.refuse,
            "miss": self.miss,
            "break": self.break_down,
            "unsayable": self.unsayable,
        }

    async def echo(self, params: Sequence[Any]) -> object:
        self.done.append(params)
        return params

    async def wait(self, params: Sequence[Any]) -> object:
        self.begun.append(params)
        await self.resume.wait()
        self.done.append(params)
        return params

    async def refuse(self, _: Sequence[Any]) -> object:
        raise Refused("recipe", "no steps.", "Add one.")

    async def miss(self, _: Sequence[Any]) -> object:
        raise Unavailable("the store is gone", "Try later.")

    async def break_down(self, _: Sequence[Any]) -> object:
        raise ZeroDivisionError

    async def unsayable(self, _: Sequence[Any]) -> object:
        return "\ud800"


class Line:
    """A client without any politeness."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._frames = Frames(1 << 24)
        self._read: list[Any] = []

    def send(self, *messages: Request | Notification | bytes) -> None:
        for message in messages:
            self.writer.write(message if isinstance(message, bytes) else encode(message))

    async def hear(self) -> Any:
        """Return the next message; None at the end."""
        async with asyncio.timeout(60):
            while not self._read:
                try:
                    data = await self.reader.read(65536)
                except ConnectionError:
                    data = b""
                if not data:
                    return None
                self._frames.feed(data)
                self._read += list(self._frames)
        return self._read.pop(0)

    async def ask(self, message: Request | bytes) -> Any:
        self.send(message)
        return await self.hear()


@asynccontextmanager
async def connected(server: RpcServer) -> AsyncIterator[Line]:
    reader, writer = await connect(server.url)
    try:
        yield Line(reader, writer)
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


@pytest.fixture
def plant() -> Plant:
    return Plant()


@asynccontextmanager
async def serving(plant: Plant, **limits: Any) -> AsyncIterator[RpcServer]:
    async with open_server(LOOPBACK, plant.methods, RpcLimits(**limits)) as server:
        yield server


async def test_calls_are_answered_with_the_id_of_the_request(plant: Plant) -> None:
    async with serving(plant) as server, connected(server) as line:
        assert await line.ask(Request(2**32 - 1, "echo", ["a", {"b": b"c"}])) == Response(
            2**32 - 1, None, ["a", {"b": b"c"}]
        )
        assert await line.ask(Request(0, "echo", [])) == Response(0, None, [])


async def test_slow_call_does_not_delay_others(plant: Plant) -> None:
    async with serving(plant) as server, connected(server) as line:
        line.send(Request(1, "wait", []))
        assert await line.ask(Request(2, "echo", [])) == Response(2, None, [])
        plant.resume.set()
        assert await line.hear() == Response(1, None, [])


async def test_call_as_notification_is_executed_and_not_answered(plant: Plant) -> None:
    async with serving(plant) as server, connected(server) as line:
        line.send(Notification("echo", ["a"]), Notification("break", []), Notification("none", []))
        assert await line.ask(Request(1, "echo", ["b"])) == Response(1, None, ["b"])
        assert plant.done == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("refuse", "recipe: no steps. Add one."),
        ("miss", "unavailable: the store is gone"),
        ("break", "internal: the call met a defect of this software: ZeroDivisionError"),
        ("unsayable", "internal: the call met a defect of this software: UnicodeEncodeError"),
        ("ech", "unknown_method: there is no method 'ech'. There are break, echo, miss, refuse, unsayable, wait."),
    ],
)
async def test_error_text_begins_with_its_kind(plant: Plant, method: str, error: str) -> None:
    async with serving(plant) as server, connected(server) as line:
        assert await line.ask(Request(1, method, [])) == Response(1, error, None)
        assert await line.ask(Request(2, "echo", [])) == Response(2, None, [])


async def test_invalid_request_is_answered_and_the_next_is_executed(plant: Plant) -> None:
    async with serving(plant) as server, connected(server) as line:
        answer = await line.ask(msgpack.packb([0, 7, "echo", {"a": 1}]))
        assert answer == Response(7, "invalid_params: parameters are not list", None)
        assert await line.ask(Request(8, "echo", [])) == Response(8, None, [])


async def test_calls_beyond_the_limit_wait_until_one_is_answered(plant: Plant, wait_until: WaitUntil) -> None:
    async with serving(plant, calls=3) as server, connected(server) as line:
        line.send(*(Request(number, "wait", [number]) for number in range(10)))
        async with connected(server) as other:
            assert await other.ask(Request(1, "echo", ["other"])) == Response(1, None, ["other"])
        await wait_until(lambda: len(plant.begun) == 3)
        plant.resume.set()
        assert sorted([(await line.hear()).id for _ in range(10)]) == list(range(10))
        assert plant.begun == [[number] for number in range(10)]


async def test_large_calls_of_many_clients_are_not_all_read_at_once(plant: Plant, wait_until: WaitUntil) -> None:
    async with serving(plant, in_hand_bytes=2500) as server, connected(server) as line, connected(server) as two:
        line.send(Request(1, "wait", ["x" * 1000]), Request(2, "wait", ["x" * 1000]))
        await wait_until(lambda: len(plant.begun) == 2)
        two.send(Request(3, "wait", ["x" * 1000]), Request(4, "wait", ["x" * 3000]))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await two.hear()
        assert len(plant.begun) == 2
        plant.resume.set()
        assert sorted([(await line.hear()).id for _ in range(2)]) == [1, 2]
        # What is larger than all the room there is has it alone.
        assert sorted([(await two.hear()).id for _ in range(2)]) == [3, 4]


async def test_requests_wait_while_the_client_reads_no_answers(plant: Plant, wait_until: WaitUntil) -> None:
    many = 3000
    async with serving(plant) as server, connected(server) as line:
        line.writer.transport.set_write_buffer_limits(high=1 << 30)
        line.reader._transport.pause_reading()  # type: ignore[attr-defined]  # noqa: SLF001 - as one that hangs
        line.send(*(Request(number, "echo", ["x" * 10_000]) for number in range(many)))
        before = -1
        while before != len(plant.done):
            before = len(plant.done)
            with suppress(AssertionError):
                await wait_until(lambda: len(plant.done) != before, 0.2)  # noqa: B023 - awaited at once
        assert len(plant.done) < many
        line.reader._transport.resume_reading()  # type: ignore[attr-defined]  # noqa: SLF001
        assert {(await line.hear()).id for _ in range(many)} == set(range(many))


async def test_client_with_an_answer_unread_for_too_long_is_disconnected(plant: Plant, wait_until: WaitUntil) -> None:
    async with serving(plant, unread=0.1) as server, connected(server) as line:
        line.writer.transport.set_write_buffer_limits(high=1 << 30)
        line.reader._transport.pause_reading()  # type: ignore[attr-defined]  # noqa: SLF001
        line.send(*(Request(number, "echo", ["x" * 100_000]) for number in range(300)))
        await wait_until(lambda: server.clients == 0)


async def test_all_clients_get_events_in_order(plant: Plant, wait_until: WaitUntil) -> None:
    async with serving(plant) as server, connected(server) as one, connected(server) as two:
        await wait_until(lambda: server.clients == 2)
        for number in range(100):
            server.notify("cloudevent", {"id": number}, "events")
        for line in (one, two):
            received = [await line.hear() for _ in range(100)]
            assert received == [Notification("cloudevent", [{"id": number}, "events"]) for number in range(100)]


async def test_only_a_client_that_does_not_read_is_disconnected(plant: Plant, wait_until: WaitUntil) -> None:
    async with serving(plant, unsent_bytes=200_000) as server, connected(server) as slow, connected(server) as good:
        await wait_until(lambda: server.clients == 2)
        slow.reader._transport.pause_reading()  # type: ignore[attr-defined]  # noqa: SLF001
        received = 0
        while server.clients == 2:
            server.notify("cloudevent", "x" * 50_000)
            received += 1
            assert (await good.hear()).method == "cloudevent"
            assert received < 1000
        assert await good.ask(Request(1, "echo", [])) == Response(1, None, [])


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\xc1", "not MessagePack"),
        (b"GET / HTTP/1.1\r\n", "neither a request nor a response nor a notification"),
        (msgpack.packb([1, 1, None, 5]), "without a request"),
        (msgpack.packb([2, "echo", ["x" * 2000]]), "more than 1000 bytes"),
        (b"\x91" * 1025, "more than 1000 bytes"),
        (b"", "silent for 0.2 s"),
        (b"\x94\x00\x01", "silent for 0.2 s"),
    ],
)
async def test_an_unreadable_client_gets_the_reason_and_is_disconnected(plant: Plant, sent: bytes, reason: str) -> None:
    async with serving(plant, message_bytes=1000, silent=0.2) as server, connected(server) as line:
        goodbye = await line.ask(sent)
        assert goodbye.method == "closing"
        assert reason in goodbye.params[0]
        assert await line.hear() is None


async def test_client_beyond_the_limit_is_refused(plant: Plant, wait_until: WaitUntil) -> None:
    async with serving(plant, clients=1) as server:
        async with connected(server) as first:
            await first.ask(Request(1, "echo", []))
            async with connected(server) as second:
                assert await second.hear() == Notification("closing", ["there are 1 clients already"])
                assert await second.hear() is None
            assert await first.ask(Request(2, "echo", [])) == Response(2, None, [])
        await wait_until(lambda: server.clients == 0)
        async with connected(server) as third:
            assert await third.ask(Request(1, "echo", [])) == Response(1, None, [])


async def test_call_of_a_disconnected_client_is_completed(plant: Plant, wait_until: WaitUntil) -> None:
    async with serving(plant) as server, connected(server) as good:
        async with connected(server) as line:
            line.send(Request(1, "wait", ["a"]), Request(2, "wait", ["b"]))
            await wait_until(lambda: len(plant.begun) == 2)
        assert await good.ask(Request(1, "echo", [])) == Response(1, None, [])
        plant.resume.set()
        await wait_until(lambda: server.clients == 1)
        assert plant.done == [[], ["a"], ["b"]]


async def test_half_closed_client_gets_its_answers(plant: Plant) -> None:
    async with serving(plant) as server, connected(server) as line:
        line.send(Request(1, "echo", []), Request(2, "wait", []))
        line.writer.write_eof()
        plant.resume.set()
        assert {(await line.hear()).id, (await line.hear()).id} == {1, 2}
        assert await line.hear() is None


async def test_stopping_ends_every_connection_and_call(plant: Plant, wait_until: WaitUntil) -> None:
    async with serving(plant) as server:
        reader, writer = await connect(server.url)
        writer.write(encode(Request(1, "wait", [])))
        await wait_until(lambda: plant.begun)
    with suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
    assert plant.done == []


NEAR_FRAMES = st.one_of(
    st.binary(max_size=100),
    st.lists(
        st.sampled_from([0, 1, 2, 3, "echo", "publish", None, -1, 2**40, {}, [], {"a": [1]}, b"\xff", True]), max_size=5
    ).map(msgpack.packb),
    st.builds(lambda params: encode(Request(1, "echo", params)), st.lists(st.binary(max_size=20), max_size=3)),
    st.builds(lambda levels: b"\x94\x00\x01\xa4echo" + b"\x91" * levels + b"\x90", st.integers(0, 1500)),
    st.builds(lambda size: b"\xdd" + size.to_bytes(4, "big"), st.integers(0, 2**32 - 1)),
    st.builds(lambda frame, cut: frame[:cut], st.just(encode(Request(1, "echo", ["x" * 50]))), st.integers(0, 60)),
)


@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(frames=st.lists(NEAR_FRAMES, max_size=4))
async def test_server_survives_arbitrary_bytes(plant: Plant, frames: list[bytes]) -> None:
    async with serving(plant, message_bytes=1000) as server:
        async with connected(server) as line:
            line.send(*frames)
            line.writer.write_eof()
            while await line.hear() is not None:
                pass
        async with connected(server) as good:
            assert await good.ask(Request(1, "echo", [1])) == Response(1, None, [1])


def test_server_works_on_uvloop() -> None:
    async def calls() -> None:
        plant = Plant()
        async with serving(plant, message_bytes=1000) as server:
            async with connected(server) as line:
                assert await line.ask(Request(1, "echo", [])) == Response(1, None, [])
                line.send(Request(2, "wait", []), b"\xc1")
                plant.resume.set()
                assert await line.hear() == Response(2, None, [])
                assert (await line.hear()).method == "closing"
                assert await line.hear() is None
            async with connected(server) as line:
                line.send(*(Request(number, "echo", ["x" * 900]) for number in range(50)))
                await line.hear()
            server.notify("cloudevent", {})

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(calls())
