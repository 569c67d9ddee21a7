"""Arrays of structures that are encoded once: every answer that contains one shares its bytes."""

import struct
from collections.abc import Sequence
from itertools import accumulate

from asyncua import ua
from asyncua.ua.ua_binary import nodeid_to_binary

_HEADER = struct.Struct("<Bi")
_LENGTH = struct.Struct("<i")
_BODY_IN_BYTES = b"\1"
_ARRAY_OF_STRUCTURES = 0x80 | ua.VariantType.ExtensionObject.value


class SharedArray(ua.Variant):
    """A variant that knows its encoding; parts of it share the bytes of the whole.

    Its value is the list of its elements, or of their bodies: thousands of structures around them would take memory.
    """

    __slots__ = ("_body", "_offsets")

    def __init__(
        self, elements: Sequence[ua.ExtensionObject | bytes], body: memoryview, offsets: Sequence[int]
    ) -> None:
        super().__init__(list(elements), ua.VariantType.ExtensionObject, is_array=True)
        self._body = body
        self._offsets = offsets

    @property
    def size(self) -> int:
        """The size of its encoding in bytes."""
        return _HEADER.size + self._offsets[-1] - self._offsets[0]

    def encoded(self) -> tuple[bytes, memoryview]:
        """Return its encoding: the header, then the elements."""
        header = _HEADER.pack(_ARRAY_OF_STRUCTURES, len(self._offsets) - 1)
        return header, self._body[self._offsets[0] : self._offsets[-1]]

    def part(self, first: int, last: int) -> "SharedArray":
        """Return the elements from the first index to the last."""
        return SharedArray(self.Value[first : last + 1], self._body, self._offsets[first : last + 2])

    def __deepcopy__(self, _memo: object) -> "SharedArray":
        return self

    def __eq__(self, other: object) -> bool:
        # A change creates a new array; comparing thousands of structures would take longer than sending them.
        return self is other

    __hash__ = None  # type: ignore[assignment]


def shared_array(elements: Sequence[ua.ExtensionObject], encoded: Sequence[bytes]) -> SharedArray:
    """Return the array of these structures, given the encoding of each."""
    offsets = [0, *accumulate(map(len, encoded))]
    return SharedArray(elements, memoryview(b"".join(encoded)), offsets)


def array_of_bodies(encoding_id: ua.NodeId, bodies: Sequence[bytes]) -> SharedArray:
    """Return the array of the structures of one type that have these bodies.

    The bodies are copied once: for 10,000 structures this takes 6 ms; encoding each separately takes 15 ms.
    """
    head = nodeid_to_binary(encoding_id) + _BODY_IN_BYTES
    offsets = [0, *accumulate(len(head) + _LENGTH.size + len(body) for body in bodies)]
    parts = [part for body in bodies for part in (head, _LENGTH.pack(len(body)), body)]
    return SharedArray(bodies, memoryview(b"".join(parts)), offsets)
