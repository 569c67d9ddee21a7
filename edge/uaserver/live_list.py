"""The array variables that follow the jobs: each entry is encoded once per change; notifications are bundled."""

import asyncio
import struct
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

import structlog
from asyncua import ua
from asyncua.server.address_space import AddressSpace

from edge.model.isa95 import JobOrderAndState, JobResponse, Payload
from edge.opcua.answer_encoding import array_of_bodies
from edge.opcua.time_slices import Pacer
from edge.uaserver.encoding import ENCODING_ID, encode_states, encode_structure

logger = structlog.get_logger(__name__)

# One job can change a list many times, and every notification contains the whole list.
BUNDLE_S = 0.05


_STATES = struct.Struct("<HI")
"""The number of the states of an entry, and their position in its body."""


class BodyPacker:
    """Encodes entries without their states, which are equal in thousands of them, and keeps each of these once."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._states: list[bytes] = []

    def pack(self, entry: Payload) -> bytes:
        """Return the body of an entry without its states."""
        states = _encoded_states(entry)
        if states not in self._numbers:
            self._numbers[states] = len(self._states)
            self._states.append(states)
        body = encode_structure(entry)
        at = body.index(states)
        return _STATES.pack(self._numbers[states], at) + body[:at] + body[at + len(states) :]

    def unpack(self, packed: bytes) -> bytes:
        """Return the whole body."""
        number, at = _STATES.unpack_from(packed)
        at += _STATES.size
        return b"".join((packed[_STATES.size : at], self._states[number], packed[at:]))


def _encoded_states(entry: Payload) -> bytes:
    match entry:
        case JobOrderAndState():
            return encode_states(entry.state)
        case JobResponse():
            return encode_states(entry.job_state)
        case _:
            return b""


class LiveList:
    """The value of one array variable: entries of a type by identifier, in the order of their first appearance."""

    def __init__(self, aspace: AddressSpace, node_id: ua.NodeId, changed: asyncio.Event, kind: type[Payload]) -> None:
        self._encoding_id = ENCODING_ID[kind]
        self._packer = BodyPacker()
        self._packed: dict[str, bytes] = {}
        self._value: ua.DataValue | None = None
        self._changed = changed
        self._has_pending_change = False
        aspace.set_attribute_value_callback(node_id, ua.AttributeIds.Value, self._read)
        self._subscribers = aspace[node_id].attributes[ua.AttributeIds.Value].datachange_callbacks

    @property
    def identifiers(self) -> Collection[str]:
        """The identifiers of the entries."""
        return self._packed.keys()

    @property
    def is_watched(self) -> bool:
        """Whether a client monitors it."""
        return bool(self._subscribers)

    def put(self, identifier: str, entry: Payload) -> None:
        """Add an entry, or replace the entry with this identifier at its position."""
        self._packed[identifier] = self._packer.pack(entry)
        self._has_changed()

    def drop(self, identifier: str) -> None:
        """Remove an entry; ignore an unknown identifier."""
        if self._packed.pop(identifier, None) is not None:
            self._has_changed()

    def replace(self, entries: dict[str, Payload]) -> None:
        """Replace all entries of the list."""
        self._packed = {identifier: self._packer.pack(entry) for identifier, entry in entries.items()}
        self._has_changed()

    async def publish(self) -> None:
        """Publish the value to its subscribers if it has changed since the last notification."""
        if not self._has_pending_change:
            return
        self._has_pending_change = False
        if not self._subscribers:
            return
        await notify_all(self._subscribers, self._current())

    def _has_changed(self) -> None:
        self._value = None
        self._has_pending_change = True
        self._changed.set()

    def _read(self, _node_id: ua.NodeId, _attribute: ua.AttributeIds) -> ua.DataValue:
        return self._current()

    def _current(self) -> ua.DataValue:
        if self._value is None:
            now = datetime.now(UTC)
            # Neither the bodies nor their encoding are kept: thousands of them would be in memory twice.
            content = array_of_bodies(self._encoding_id, [self._packer.unpack(data) for data in self._packed.values()])
            self._value = ua.DataValue(content, SourceTimestamp=now, ServerTimestamp=now)
        return self._value


async def write_value(aspace: AddressSpace, node_id: ua.NodeId, value: ua.Variant, status: int = 0) -> None:
    """Write the value of now, and notify its subscribers; also null, which asyncua refuses in place of another type."""
    now = datetime.now(UTC)
    held = aspace[node_id].attributes[ua.AttributeIds.Value]
    held.value = ua.DataValue(value, StatusCode=ua.StatusCode(status), SourceTimestamp=now, ServerTimestamp=now)
    await notify_all(held.datachange_callbacks, held.value)


async def notify_all(subscribers: Mapping[int, Any], value: ua.DataValue) -> None:
    """Pass a value to every subscriber, in short slices."""
    pacer = Pacer()
    for handle in tuple(subscribers):
        if handle not in subscribers:  # it unsubscribed while another one was notified
            continue
        try:
            await subscribers[handle](handle, value)
        except Exception as error:  # noqa: BLE001 - a fault of asyncua for one client must not affect the others
            logger.error("OPC UA notification failed", monitored_item=handle, reason=repr(error))
        await pacer.step()


async def notify_subscribers(lists: tuple[LiveList, ...], changed: asyncio.Event) -> None:
    """Publish every change at most BUNDLE_S after it happened, until cancelled."""
    while True:
        await changed.wait()
        await asyncio.sleep(BUNDLE_S)
        changed.clear()
        for live_list in lists:
            await live_list.publish()
