"""Resources are read and posted over HTTP; only a refusal is a known failure of a post."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import HttpResource, PostResource
from edge.features.flows.ports.web import get_resource, post_resource


@contextlib.asynccontextmanager
async def server(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve one answer to every request; an empty one closes the connection. Yields the URL and the requests."""
    requests: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"ontent-length" in line.lower()), 0)
        requests.append(head + await reader.readexactly(length))
        writer.write(answer)
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/x", requests


def ok(content: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content)


@pytest.mark.parametrize(("content", "value"), [(b'{"a": 1}', {"a": 1}), (b"plain \xff", "plain \ufffd"), (b"", "")])
async def test_resource_is_json_or_text(content: bytes, value: Any) -> None:
    async with server(ok(content)) as (url, _):
        assert await get_resource(HttpResource(url), "") == value


async def test_value_is_posted_with_the_id_of_the_task() -> None:
    async with server(ok(b'"done"')) as (url, requests):
        assert await post_resource(PostResource(url, {"a": 1}), "flow_0_n") == "done"
    assert requests[0].endswith(b'\r\n\r\n{"a":1}')
    assert b"idempotency-key: flow_0_n" in requests[0].lower()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "status 404"),
        (b"HTTP/1.1 302 Found\r\nLocation: file:///etc/hostname\r\nContent-Length: 0\r\n\r\n", "status 302"),
        (ok(b"v" * (1 << 20) + b"v"), "more than 1048576 bytes"),
    ],
)
async def test_refusal_fails_the_node(answer: bytes, reason: str) -> None:
    async with server(answer) as (url, _):
        with pytest.raises(NodeError, match=reason):
            await get_resource(HttpResource(url), "")
        with pytest.raises(NodeError, match=reason):
            await post_resource(PostResource(url, 1), "t")


async def test_post_without_a_response_has_an_unknown_outcome() -> None:
    async with server(b"") as (url, _):
        with pytest.raises(OutcomeUnknownError):
            await post_resource(PostResource(url, 1), "t")
        with pytest.raises(NodeError):
            await get_resource(HttpResource(url), "")


async def test_unreachable_server_fails_the_node() -> None:
    async with server(b"") as (url, _):
        pass
    for call in (post_resource(PostResource(url, 1), "t"), get_resource(HttpResource(url), "")):
        with pytest.raises(NodeError, match="refused"):
            await call
