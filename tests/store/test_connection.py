"""Every caller gets its own reply or an error, whatever happens to the connection."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.foundation.errors import Defect, EdgeError, Unavailable
from edge.store.connection import AccessDenied, CommandConnection, Endpoint, OutOfMemory, ReplyError, error_of_reply
from tests.free_ports import free_port
from tests.store.servers import own_server, relay_to
from tests.store.tls import TlsFiles, tls_server, write_certificate


def connection_to(where: str | Endpoint, timeout: float = 5.0) -> CommandConnection:
    endpoint = Endpoint(path=where) if isinstance(where, str) else where
    return CommandConnection(endpoint, timeout=timeout, backoff=(0.001, 0.01))


class Saboteur:
    """A way to a server that breaks, or falls silent for a while, in the middle of what it forwards."""

    def __init__(self, server_path: str, chance: random.Random) -> None:
        self._server_path = server_path
        self._chance = chance
        self._lines: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(self._server_path)
        self._lines += [writer, server_writer]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._forward(reader, server_writer))
            tasks.create_task(self._forward(server_reader, writer))

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(self._chance.randint(1, 4000)):
                if self._chance.random() < 0.02:
                    writer.write(data[: self._chance.randint(0, len(data))])
                    break
                if self._chance.random() < 0.01:
                    await asyncio.sleep(0.1)
                writer.write(data)
        writer.close()

    def close(self) -> None:
        """Close every line."""
        for line in self._lines:
            line.close()


@contextlib.asynccontextmanager
async def sabotaged(directory: Path, server_path: str, seed: int, tls: TlsFiles | None) -> AsyncIterator[Endpoint]:
    saboteur = Saboteur(server_path, random.Random(seed))
    if tls is not None:
        async with tls_server(tls, saboteur.serve) as port:
            yield Endpoint(host="127.0.0.1", port=port, tls=tls.client_context())
            saboteur.close()
        return
    path = f"{directory}/saboteur.sock"
    async with await asyncio.start_unix_server(saboteur.serve, path):
        yield Endpoint(path=path)
        saboteur.close()


@pytest.mark.untraced
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_no_reply_reaches_the_wrong_caller(tmp_path: Path, seed: int) -> None:
    """With random cancellations, timeouts and disconnects, over calls of one and of several commands."""
    answered = asyncio.run(_ask_under_sabotage(tmp_path, seed, None))
    assert answered > 0


@pytest.mark.untraced
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_no_reply_reaches_the_wrong_caller_over_tls(tmp_path: Path, seed: int) -> None:
    answered = asyncio.run(_ask_under_sabotage(tmp_path, seed, write_certificate(tmp_path)))
    assert answered > 0


async def _ask_under_sabotage(directory: Path, seed: int, tls: TlsFiles | None) -> int:
    chance = random.Random(seed)
    answered = 0

    async def ask(connection: CommandConnection, number: int) -> None:
        nonlocal answered
        words = [f"{number} {part} {'x' * chance.randint(0, 3000)}" for part in range(chance.choice((1, 1, 1, 3)))]
        with contextlib.suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(chance.choice((0.001, 0.01, 10))):
                assert await connection.call(*(("ECHO", word) for word in words)) == words
                answered += 1

    async with own_server(directory) as server, sabotaged(directory, server.url[7:], seed, tls) as endpoint:
        connection = connection_to(endpoint, timeout=0.2 if tls else 0.05)
        # A slow machine may answer nothing in time for some batches.
        for batch in itertools.takewhile(lambda batch: batch < 15 or not answered, itertools.count()):
            asked = [asyncio.create_task(ask(connection, batch * 100 + number)) for number in range(30)]
            await asyncio.sleep(0)
            for task in chance.sample(asked, 5):
                task.cancel()
            for result in await asyncio.gather(*asked, return_exceptions=True):
                assert result is None or isinstance(result, asyncio.CancelledError)
        connection.close()
    return answered


async def test_calls_of_one_turn_share_a_connection_and_keep_their_order(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server:
        connection = connection_to(server.url[7:])
        counted = await asyncio.gather(*(connection.call(("INCR", "n")) for _ in range(200)))
        assert counted == [[number + 1] for number in range(200)]
        (clients,) = await connection.call(("CLIENT", "LIST"))
        assert len(clients.strip().splitlines()) == 1
        connection.close()


async def test_calls_in_flight_fail_when_the_server_is_killed(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server:
        connection = connection_to(server.url[7:])
        await connection.call(("PING",))
        server.freeze()
        asked = [asyncio.create_task(connection.call(("INCR", "n"))) for _ in range(50)]
        await asyncio.sleep(0)
        await server.kill()
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(result, Unavailable) for result in results)
        await server.start()
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(Unavailable):
                    assert await connection.call(("PING",)) == ["PONG"]
                    break
                await asyncio.sleep(0.005)
        connection.close()


async def test_calls_to_a_frozen_server_fail_at_their_deadline(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server:
        connection = connection_to(server.url[7:], timeout=0.1)
        await connection.call(("PING",))
        server.freeze()
        async with asyncio.timeout(60):
            with pytest.raises(Unavailable, match="no reply in time"):
                await connection.call(("PING",))
        server.thaw()
        assert await _until_served(connection) == ["PONG"]
        connection.close()


async def _until_served(connection: CommandConnection) -> list[object]:
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(Unavailable):
                return await connection.call(("PING",))
            await asyncio.sleep(0.01)


async def test_attempts_to_connect_are_made_with_growing_delays(tmp_path: Path) -> None:
    attempts = 0

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        writer.close()

    path = f"{tmp_path}/refusing.sock"
    async with await asyncio.start_unix_server(refuse, path):
        connection = CommandConnection(Endpoint(path=path), backoff=(60.0, 60.0))
        for _ in range(20):
            with pytest.raises(Unavailable, match="does not answer"):
                await connection.call(("PING",))
        assert attempts == 1


async def test_call_cancelled_while_connecting_does_not_block_others(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server, relay_to(tmp_path, server.url) as relay:
        gate = asyncio.Event()

        async def deliver(_: bytes) -> bool:
            return await gate.wait()

        relay.deliver = deliver
        connection = CommandConnection(Endpoint(path=relay.url[7:]))
        first, second = (asyncio.create_task(connection.call(("PING",))) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        gate.set()
        assert await second == ["PONG"]
        connection.close()


async def test_calls_beyond_the_in_flight_limit_wait_for_room(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server:
        connection = CommandConnection(Endpoint(path=server.url[7:]), most_in_flight=3)
        words = [str(number) for number in range(100)]
        assert await asyncio.gather(*(connection.call(("ECHO", word)) for word in words)) == [[text] for text in words]
        connection.close()


async def test_user_password_database_and_name_are_those_of_the_endpoint(tmp_path: Path) -> None:
    async with own_server(tmp_path, "--user", "station", "on", ">secret", "~*", "&*", "+@all") as server:

        async def ask(**who: str) -> list[object]:
            endpoint = Endpoint(path=server.url[7:], database=3, client_name="edge", **who)  # type: ignore[arg-type]
            connection = CommandConnection(endpoint)
            try:
                return await connection.call(("ACL", "WHOAMI"), ("CLIENT", "GETNAME"), ("CLIENT", "INFO"))
            finally:
                connection.close()

        user, name, info = await ask(username="station", password="secret")
        assert (user, name) == ("station", "edge")
        assert " db=3 " in str(info)
        assert " resp=3 " in str(info)
        with pytest.raises(AccessDenied, match="password"):
            await ask(username="station", password="wrong")


async def test_connection_works_over_tcp(tmp_path: Path) -> None:
    port = free_port()
    async with own_server(tmp_path, "--port", str(port)):
        connection = CommandConnection(Endpoint(host="127.0.0.1", port=port))
        assert await connection.call(("PING",)) == ["PONG"]
        connection.close()


async def test_connection_is_opened_again_after_a_replica_error(tmp_path: Path) -> None:
    """The name of the server may lead to the primary now."""
    async with own_server(tmp_path) as server:
        connection = CommandConnection(Endpoint(path=server.url[7:]))
        (first,) = await connection.call(("CLIENT", "ID"))
        await connection.call(("REPLICAOF", "127.0.0.1", free_port()))
        (reply,) = await connection.call(("SET", "a", "b"))
        assert isinstance(reply, ReplyError)
        (second,) = await connection.call(("CLIENT", "ID"))
        assert second != first
        connection.close()


class _OneServer:
    """Accepts the server whose port it expects."""

    commands = (("CONFIG", "GET", "port"),)

    def __init__(self, port: str) -> None:
        self.port = port

    def accept(self, replies: Sequence[Any]) -> None:
        if replies[0]["port"] != self.port:
            raise Unavailable("another server")


async def test_connection_to_an_unexpected_server_serves_no_call(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server:
        greeting = _OneServer("0")
        connection = CommandConnection(Endpoint(path=server.url[7:]), greeting=greeting, backoff=(0.0, 0.0))
        assert await connection.call(("PING",)) == ["PONG"]
        greeting.port = "1"
        connection.close()
        with pytest.raises(Unavailable, match="another server"):
            await connection.call(("PING",))


async def test_ended_connection_raises_its_error_in_every_call(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server:
        connection = CommandConnection(Endpoint(path=server.url[7:]))
        blocked = asyncio.create_task(connection.call(("BLPOP", "list", "0")))
        await asyncio.sleep(0)
        connection.end(Unavailable("the primary has changed"))
        for call in (blocked, connection.call(("PING",))):
            with pytest.raises(Unavailable, match="the primary has changed"):
                await call


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("WRONGPASS invalid username-password pair or user is disabled.", AccessDenied),
        ("NOAUTH HELLO must be called with the client already authenticated", AccessDenied),
        ("ERR AUTH <password> called without any password configured for the default user.", AccessDenied),
        ("NOPERM User edge has no permissions to run the 'set' command", AccessDenied),
        ("OOM command not allowed when used memory > 'maxmemory'.", OutOfMemory),
        ("READONLY You can't write against a read only replica.", Unavailable),
        ("LOADING Valkey is loading the dataset in memory", Unavailable),
        ("MASTERDOWN Link with MASTER is down", Unavailable),
        ("MISCONF Errors writing to the AOF file: No space left on device", Unavailable),
        ("NOGROUP No such key", Unavailable),
        ("ERR unknown command 'X'", Defect),
    ],
)
def test_error_reply_is_classified_by_its_first_word(reply: str, kind: type[EdgeError]) -> None:
    error = error_of_reply(reply)
    assert type(error) is kind
    assert reply in error.message
    assert error.advice
