"""The cache of the imported type nodes: one file, from which a node is read on its first access.

Importing the node sets takes more than a second of CPU and 50 MB, and clients read few of these thousands of nodes.
The file contains the parts that several nodes have, every node as a pickle of its own, then an index of the positions
with the declarations of what the server instantiates.
The index of numeric node ids is two sorted arrays: as a dictionary it would occupy 2 MB. The file is read, not mapped:
mapped pages would stay in memory next to the nodes that were made of them.

Nodes share their equal attribute values and references: code that changes one of a node replaces it.

A pickle can execute code: the file is written during the installation, and `read` refuses a file that other users can
write. A checksum detects what a worn flash returns: a changed byte would make other nodes without an error.
"""

import contextlib
import gc
import os
import pickle
import struct
import zlib
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final, NamedTuple, Self, TypeAlias

from asyncua import ua
from asyncua.server.address_space import AttributeValue, NodeData

from edge.foundation.files import write_atomically
from edge.uaserver.declarations import Declarations

_MAGIC = b"microdcs-edge type nodes\n"
_HEADER = struct.Struct(f"<{len(_MAGIC)}sI32sQ")
"""The magic, the checksum of all that follows it, the key, the position of the index."""
_SUMMED_FROM = len(_MAGIC) + 4
_PIECE_SIZE = 1 << 16
_OTHERS_MAY_WRITE = 0o022


class UnusableCache(Exception):
    """The cache file is unusable, for the reason in the message; the node sets are imported instead."""


class _Index(NamedTuple):
    """The positions of the nodes: the node of `keys[n]` lies between `bounds[n]` and `bounds[n + 1]`."""

    keys: "array[int]"
    bounds: "array[int]"
    others: Mapping[tuple[int, Any], tuple[int, int]]
    """The start and end of nodes whose id is not numeric."""
    parts: "array[int]"
    """Part `n` lies between `parts[n]` and `parts[n + 1]`."""
    declarations: Declarations

    def find(self, node_id: ua.NodeId) -> tuple[int, int] | None:
        """Return the start and end of a node; None for an unknown one."""
        if not isinstance(node_id.Identifier, int):
            return self.others.get((node_id.NamespaceIndex, node_id.Identifier))
        key = _key(node_id)
        at = bisect_left(self.keys, key)
        if at == len(self.keys) or self.keys[at] != key:
            return None
        return self.bounds[at], self.bounds[at + 1]


def _key(node_id: ua.NodeId) -> int:
    """Return a numeric node id as one number; its identifier has 32 bits (OPC 10000-6, 5.2.2.9)."""
    return node_id.NamespaceIndex << 32 | int(node_id.Identifier)


_Part: TypeAlias = ua.DataValue | ua.ReferenceDescription
_State: TypeAlias = tuple[ua.NodeId, Sequence[tuple[int, _Part | int]], Sequence[_Part | int]]
"""A stored node: its id, its attributes, its references; a number stands for a shared part."""
_ATTRIBUTES = MappingProxyType({int(identifier): identifier for identifier in ua.AttributeIds})


_FROZEN_AT_ONCE: Final = 500
"""Nodes that the garbage collector visits at most; each freeze also keeps what else is alive at that moment."""


class TypeNodes(MutableMapping[ua.NodeId, NodeData]):
    """All nodes of an address space: those of the file, read on demand, and those added or changed later.

    Iteration yields only the nodes in memory, like the lazy dictionary of asyncua.
    """

    def __init__(self, file: BinaryIO, index: _Index) -> None:
        self._file = file
        self._index = index
        self._deleted: set[ua.NodeId] = set()
        self._resident: dict[ua.NodeId, NodeData] = {}
        self._parts: dict[int, _Part] = {}
        self._unfrozen = 0
        """Nodes that were read since the last freeze."""

    @property
    def declarations(self) -> Declarations:
        """What instances of the types consist of."""
        return self._index.declarations

    def __getitem__(self, key: ua.NodeId) -> NodeData:
        node = self._resident.get(key)
        if node is None:
            position = self._stored(key)
            if position is None:
                raise KeyError(key)
            node = self._resident[key] = self._node(self._load(*position))
            self._unfrozen += 1
            if self._unfrozen == _FROZEN_AT_ONCE:
                # Types live until the end: a collection of what a client has read held the event loop for 60 ms.
                gc.freeze()
                self._unfrozen = 0
        return node

    def _node(self, state: _State) -> NodeData:
        node_id, attributes, references = state
        node = NodeData(node_id)
        node.attributes = {_ATTRIBUTES[attribute]: AttributeValue(self._part(value)) for attribute, value in attributes}
        node.references = [self._part(reference) for reference in references]
        return node

    def _part(self, part: _Part | int) -> Any:
        if not isinstance(part, int):
            return part
        found = self._parts.get(part)
        if found is None:
            bounds = self._index.parts
            found = self._parts[part] = self._load(bounds[part], bounds[part + 1])
        return found

    def _load(self, start: int, end: int) -> Any:
        return pickle.loads(os.pread(self._file.fileno(), end - start, start))  # noqa: S301 - see the module

    def __setitem__(self, key: ua.NodeId, value: NodeData) -> None:
        self._resident[key] = value

    def __contains__(self, key: object) -> bool:
        return key in self._resident or (isinstance(key, ua.NodeId) and self._stored(key) is not None)

    def __delitem__(self, key: ua.NodeId) -> None:
        if self._stored(key) is not None:
            self._deleted.add(key)
            self._resident.pop(key, None)
        else:
            del self._resident[key]

    def _stored(self, key: ua.NodeId) -> tuple[int, int] | None:
        return None if key in self._deleted else self._index.find(key)

    def __iter__(self) -> Iterator[ua.NodeId]:
        return iter(self._resident)

    def __len__(self) -> int:
        return len(self._resident)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def write(path: Path, key: bytes, nodes: Mapping[ua.NodeId, NodeData], declarations: Declarations) -> None:
    """Write every node, the declarations and the `key` (32 bytes) to a file; the file is replaced atomically."""
    numeric = sorted((node_id for node_id in nodes if isinstance(node_id.Identifier, int)), key=_key)
    shared = _shared_parts(nodes.values())
    parts, bounds = array("Q"), array("Q")
    others: dict[tuple[int, Any], tuple[int, int]] = {}
    content = bytearray(_HEADER.size)
    for part in shared:
        parts.append(len(content))
        content += part
    parts.append(len(content))
    for node_id in numeric:
        bounds.append(len(content))
        content += _dump(_state(nodes[node_id], shared))
    bounds.append(len(content))
    for node_id in [node for node in nodes if not isinstance(node.Identifier, int)]:
        start = len(content)
        content += _dump(_state(nodes[node_id], shared))
        others[node_id.NamespaceIndex, node_id.Identifier] = start, len(content)
    index_at = len(content)
    content += _dump(tuple(_Index(array("Q", map(_key, numeric)), bounds, others, parts, declarations)))
    _HEADER.pack_into(content, 0, _MAGIC, 0, key, index_at)
    _HEADER.pack_into(content, 0, _MAGIC, zlib.crc32(memoryview(content)[_SUMMED_FROM:]), key, index_at)
    write_atomically(path, bytes(content), 0o644)


def _shared_parts(nodes: Iterable[NodeData]) -> dict[bytes, int]:
    """Return the number of each part that several nodes have, by its content."""
    counts = Counter(
        _dump(part)
        for node in nodes
        for part in (*(attribute.value for attribute in node.attributes.values()), *node.references)
    )
    return {content: number for number, content in enumerate(data for data, count in counts.items() if count > 1)}


def _state(node: NodeData, shared: Mapping[bytes, int]) -> _State:
    attributes = [(int(attribute), _stored_part(held.value, shared)) for attribute, held in node.attributes.items()]
    return node.nodeid, attributes, [_stored_part(reference, shared) for reference in node.references]


def _stored_part(part: _Part, shared: Mapping[bytes, int]) -> _Part | int:
    number = shared.get(_dump(part))
    return part if number is None else number


def _dump(content: Any) -> bytes:
    return pickle.dumps(content, pickle.HIGHEST_PROTOCOL)


def read(path: Path, key: bytes) -> TypeNodes:
    """Open the file. Raises UnusableCache when it is missing, writable by others, damaged, or has another key."""
    with contextlib.ExitStack() as opened:
        try:
            file = opened.enter_context(path.open("rb"))
            status = os.fstat(file.fileno())
            if status.st_mode & _OTHERS_MAY_WRITE or status.st_uid not in {0, os.geteuid()}:
                raise UnusableCache("another user may write to it")
            if status.st_size < _HEADER.size:
                raise UnusableCache("it is truncated")
            magic, checksum, found, index_at = _HEADER.unpack(file.read(_HEADER.size))
            if magic != _MAGIC or found != key:
                raise UnusableCache("it belongs to another version of the program or of the node sets")
            if _checksum(file) != checksum:
                raise UnusableCache("it is damaged")
            file.seek(index_at)
            index = _index(file)
        except OSError as error:
            raise UnusableCache(error.strerror or str(error)) from error
        opened.pop_all()
        return TypeNodes(file, index)


def _index(file: BinaryIO) -> _Index:
    """Return the index. Raises UnusableCache when other code of the same version has written it, as in a checkout."""
    try:
        return _Index(*pickle.load(file))  # noqa: S301 - see the module
    except OSError:
        raise
    except Exception as error:  # pickle: "other exceptions may also be raised during unpickling"
        raise UnusableCache(f"it was made by other code: {error}") from error


def _checksum(file: BinaryIO) -> int:
    """Return the checksum of the file, read in pieces: its 8 MB would stay in the memory of the process."""
    file.seek(_SUMMED_FROM)
    checksum = 0
    while piece := file.read(_PIECE_SIZE):
        checksum = zlib.crc32(piece, checksum)
    return checksum
