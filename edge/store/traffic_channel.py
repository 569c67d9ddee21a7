"""The traffic of equipment from the gateway to its present recorders: it is not stored and wears no flash."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from edge.foundation.errors import Unavailable
from edge.foundation.text import Text
from edge.model.equipment_traffic import TrafficRecord
from edge.store.client import Store

_CHANNEL = "overheard"
"""The wire name: recorders and gateways of other versions use it."""


async def listeners(store: Store, names: Sequence[str]) -> dict[str, int]:
    """Return the number of recorders of each of these pieces of equipment."""
    found = await store.execute("PUBSUB", "NUMSUB", *(channel(store, name) for name in names))
    return dict(zip(names, found[1::2], strict=True))


def encode_record(passed: TrafficRecord) -> bytes:
    """Encode the record now; replace values that are not JSON by their type name."""
    try:
        return msgspec.json.encode(passed, enc_hook=str)
    except (TypeError, ValueError, RecursionError) as error:
        return msgspec.json.encode(msgspec.structs.replace(passed, data={"unwritable": str(error)}))


async def publish(store: Store, name: str, passed: bytes) -> bool:
    """Publish an encoded record; return False when there is no subscriber."""
    return bool(await store.execute("PUBLISH", channel(store, name), passed))


@asynccontextmanager
async def subscribe(store: Store, name: str) -> AsyncIterator[AsyncIterator[TrafficRecord]]:
    """Subscribe to the traffic of a piece of equipment for the length of the block; its iterator raises Unavailable."""
    async with store.subscribe(channel(store, name)) as messages:
        yield (_decode_record(message) async for message in messages)


def _decode_record(message: str) -> TrafficRecord:
    try:
        return msgspec.json.decode(message, type=TrafficRecord)
    except (msgspec.DecodeError, RecursionError) as error:
        problem = Text.of("a gateway of another version publishes unreadable records: {reason}", reason=error)
        raise Unavailable(problem, "Use the `edge` of that gateway.") from error


def channel(store: Store, name: str) -> str:
    """Return the channel of a piece of equipment; a channel is not a key and stores nothing."""
    return f"{store.keys.prefix}:{_CHANNEL}:{name}"
