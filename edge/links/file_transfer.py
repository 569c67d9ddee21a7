"""Reads a temporary file of an OPC UA server (OPC 10000-20, 4.4) part by part, bounded in time."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from msgspec import Struct

from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text
from edge.links.opcua import ClientSession, Node

_NULL_IDS = (None, "", "i=0")
_PART_BYTES = 256 << 10
# OPC 10000-20, 4.4.6: the states of a transfer, by their nodes and by their names.
_READY, _FAILED = frozenset({"i=15819", "readtransfer"}), frozenset({"i=15823", "error"})
_POLL_SECONDS = 0.2


class TransferTimes(Struct, frozen=True):
    """The most seconds of a whole transfer, and of closing its file."""

    whole: float = 20.0
    close: float = 2.0


_TIMES = TransferTimes()


async def read_temporary_file(
    session: ClientSession, transfer: Node, options: Any, times: TransferTimes = _TIMES
) -> AsyncGenerator[bytes, None]:
    """Yield the parts of the file that a server generates by GenerateFileForRead; close it whatever happens.

    Raises Refused when the server declines, takes too long or sends less or more than it announces.
    """
    end = asyncio.get_running_loop().time() + times.whole
    async with _limit(end, times):
        file, handle, machine = _generated(transfer, await session.call(transfer, "GenerateFileForRead", options))
    try:
        async with _limit(end, times):
            if machine not in _NULL_IDS:
                await _wait_until_generated(session, Node(machine, f"{transfer.path}/state of the transfer"))
            announced = await _size(session, file)
        received = 0
        while True:
            async with _limit(end, times):
                part = _part(await session.call(file, "Read", handle, _PART_BYTES))
            if not part:
                break
            received += len(part)
            # Outside of the time limit: a slow disk of ours is not a fault of the server.
            yield part
        if announced is not None and announced != received:
            raise Refused(
                "device",
                Text.of(
                    "the file should have {announced} bytes, and has {received}", announced=announced, received=received
                ),
            )
    finally:
        await _close(session, file, handle, times)


@asynccontextmanager
async def _limit(end: float, times: TransferTimes) -> AsyncIterator[None]:
    """Limit the block to the end of the transfer. Raises Refused when it is over."""
    try:
        async with asyncio.timeout_at(end):
            yield
    except TimeoutError:
        raise Refused(
            "device", Text.of("the transfer of the file took more than {whole:g} s", whole=times.whole)
        ) from None


def _generated(transfer: Node, outputs: list[Any]) -> tuple[Node, int, Any]:
    """Return the file, its handle and the state machine of its generation, if any."""
    match outputs:
        case [str() as node_id, int() as handle, machine] if node_id not in _NULL_IDS:
            return Node(node_id, f"{transfer.path}/temporary file"), handle, machine
        case _:
            raise Refused("device", "GenerateFileForRead: the answer is not what OPC 10000-20 says")


def _part(outputs: list[Any]) -> bytes:
    match outputs:
        case [bytes() as part] if len(part) <= _PART_BYTES:
            return part
        case [None]:
            return b""
        case _:
            raise Refused("device", "Read: the answer is not what OPC 10000-20 says")


async def _wait_until_generated(session: ClientSession, machine: Node) -> None:
    """Wait until the file can be read: the server generates it after its answer."""
    current = (await session.children(machine)).get("CurrentState")
    if current is None:
        raise Refused("device", "the transfer of the file has no state")
    state = (await session.children(current)).get("Id")
    while True:
        found = {str(await session.read(node)).replace(" ", "").lower() for node in (current, state) if node}
        if found & _READY:
            return
        if found & _FAILED:
            raise Refused("device", "the server reports an error of the transfer")
        await asyncio.sleep(_POLL_SECONDS)


async def _size(session: ClientSession, file: Node) -> int | None:
    """Return the size of a file; None where the server does not know it."""
    # A server may decline to say it; a lost connection shows at the next request.
    with suppress(Refused, Unavailable):
        if (size := (await session.children(file)).get("Size")) is not None:
            value = await session.read(size)
            return value if isinstance(value, int) and value > 0 else None
    return None


async def _close(session: ClientSession, file: Node, handle: int, times: TransferTimes) -> None:
    """Close the file, which removes it at the server; a server that declines removes it after its own time."""
    with suppress(Refused, TimeoutError):
        async with asyncio.timeout(times.close):
            await session.call(file, "Close", handle)
    session.forget(file)
