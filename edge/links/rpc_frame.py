"""The messages of MessagePack-RPC, and the bytes they travel as.

https://github.com/msgpack-rpc/msgpack-rpc/blob/master/spec.md
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, assert_never

import msgpack
import msgspec

from edge.errors import Refused

MESSAGE_BYTES = 1 << 20
"""A larger message would threaten the memory of a gateway: what is read takes up to seventy times its bytes."""
MAX_NESTING = 40
"""A message, its parameters, an event and its data are levels too: the data itself may have what MQTT allows it."""

_LARGEST_ID = 0xFFFF_FFFF
_LONGEST_METHOD = 100
"""A method is named in errors and logs."""


@dataclass(frozen=True, slots=True)
class Request:
    """`[0, id, method, params]`: wants a response of the same id, which its sender chose."""

    id: int
    method: str
    params: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Response:
    """`[1, id, error, result]`: an error is a text that begins with its kind, or None."""

    id: int
    error: Any
    result: Any


@dataclass(frozen=True, slots=True)
class Notification:
    """`[2, method, params]`: wants no response."""

    method: str
    params: Sequence[Any]


@dataclass(frozen=True, slots=True)
class InvalidRequest:
    """A request of which no more than its id is sound."""

    id: int
    fault: str


def encode(message: Request | Response | Notification) -> bytes:
    """Give the bytes of a message; msgspec Structs in it travel under the names of their fields on the wire."""
    match message:
        case Request(id, method, params):
            parts: tuple[object, ...] = (0, id, method, params)
        case Response(id, error, result):
            parts = (1, id, error, result)
        case Notification(method, params):
            parts = (2, method, params)
        case _:
            assert_never(message)
    # JSON knows whole numbers of more than 64 bits and MessagePack does not: the nearest double is sent instead.
    packed: bytes = msgpack.packb(msgspec.to_builtins(parts, builtin_types=(bytes,)), default=float)
    return packed


class Frames:
    """Cuts a stream of bytes into messages, holding at most one message and what was fed last."""

    def __init__(self, most_bytes: int = MESSAGE_BYTES) -> None:
        self._most_bytes = most_bytes
        # It only finds where a message ends, and builds nothing: a header that promises a million entries costs
        # nothing until they have come.
        self._scanner = msgpack.Unpacker(max_buffer_size=0)
        self._buffer = bytearray()
        self._taken = 0

    def feed(self, data: bytes) -> None:
        """Take what was received."""
        self._scanner.feed(data)
        self._buffer += data

    def __iter__(self) -> Iterator[Request | Response | Notification | InvalidRequest]:
        """Give the messages that are complete. Raises Refused(`malformed`): what follows cannot be read."""
        return map(read, self.split_frames())

    def split_frames(self) -> Iterator[bytes]:
        """Give the bytes of each message that is complete; raises as above."""
        while self._find_end():
            size = self._scanner.tell() - self._taken
            self._check_size(size)
            frame = bytes(memoryview(self._buffer)[:size])
            del self._buffer[:size]
            self._taken += size
            yield frame
        self._check_size(len(self._buffer))

    def _find_end(self) -> bool:
        try:
            self._scanner.skip()
        except msgpack.OutOfData:
            return False
        except ValueError as error:
            raise Refused("malformed", f"not MessagePack: {error!r}") from None
        return True

    def _check_size(self, size: int) -> None:
        if size > self._most_bytes:
            raise Refused("malformed", f"a message of more than {self._most_bytes} bytes")


def read(frame: bytes) -> Request | Response | Notification | InvalidRequest:
    """Read the bytes of one message. Raises Refused(`malformed`)."""
    try:
        parts = msgspec.msgpack.decode(frame)
    except (ValueError, RecursionError) as error:
        raise Refused("malformed", f"not MessagePack: {error}") from None
    match parts:
        case [0, int(id), method, params] if 0 <= id <= _LARGEST_ID:
            if fault := _fault_of(method, params):
                return InvalidRequest(id, fault)
            return Request(id, method, params)
        case [1, int(id), error, result] if not any(_nests_deeper(each, MAX_NESTING) for each in (error, result)):
            return Response(id, error, result)
        case [2, method, params]:
            if fault := _fault_of(method, params):
                raise Refused("malformed", f"a notification whose {fault}")
            return Notification(method, params)
        case _:
            raise Refused("malformed", "neither a request nor a response nor a notification")


def _fault_of(method: object, params: object) -> str | None:
    if not isinstance(method, str) or len(method) > _LONGEST_METHOD:
        return f"method is no text of at most {_LONGEST_METHOD} characters"
    if not isinstance(params, list):
        return "parameters are no list"
    if _nests_deeper(params, MAX_NESTING):
        return f"parameters are nested deeper than {MAX_NESTING} levels"
    return None


def _nests_deeper(value: object, levels: int) -> bool:
    level = [value]
    for _ in range(levels + 1):
        level = list(chain.from_iterable(each.values() if isinstance(each, dict) else each for each in _nests(level)))
        if not level:
            return False
    return True


def _nests(level: list[object]) -> Iterator[Any]:
    return (each for each in level if isinstance(each, dict | list))
