"""The cache file of type nodes: it returns the written nodes, and an unsuitable file is refused."""

import gc
from pathlib import Path
from typing import cast

import pytest
from asyncua import ua
from asyncua.server.address_space import AttributeValue, NodeData
from msgspec import Struct

from edge.uaserver import declarations as module
from edge.uaserver import type_cache
from edge.uaserver.declarations import Declaration
from edge.uaserver.type_cache import UnusableCache

KEY = bytes(range(32))
_HEADER = 69
"""The length of the header: magic, checksum, key, position of the index."""


def node(node_id: ua.NodeId, name: str) -> NodeData:
    data = NodeData(node_id)
    data.attributes[ua.AttributeIds.DisplayName] = AttributeValue(ua.DataValue(ua.Variant(ua.LocalizedText(name))))
    return data


def name_of(data: NodeData) -> str:
    return str(data.attributes[ua.AttributeIds.DisplayName].value.Value.Value.Text)


NODES = {node_id: node(node_id, f"node {node_id}") for node_id in (ua.NodeId(1, 2), ua.NodeId(1, 3), ua.NodeId("a", 2))}
DECLARED = {
    ua.NodeId(1, 2): Declaration(
        ua.QualifiedName("Pump", 2),
        ua.NodeId(47),
        {ua.AttributeIds.EventNotifier: ua.DataValue(ua.Variant(1, ua.VariantType.Byte))},
        None,
        None,
        (),
    )
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "types.cache"
    type_cache.write(path, KEY, NODES, DECLARED)
    return path


def test_cached_nodes_are_unchanged_after_reading(path: Path) -> None:
    with type_cache.read(path, KEY) as nodes:
        assert {node_id: name_of(nodes[node_id]) for node_id in NODES} == {
            node_id: name_of(data) for node_id, data in NODES.items()
        }


def test_cached_declarations_are_unchanged_after_reading(path: Path) -> None:
    with type_cache.read(path, KEY) as nodes:
        assert nodes.declarations == DECLARED


def test_nodes_share_their_equal_parts_and_no_changeable_one(path: Path) -> None:
    name = ua.AttributeIds.DisplayName
    nodes = {ua.NodeId(text, 2): node(ua.NodeId(text, 2), "a pump") for text in (1, 2)}
    nodes[ua.NodeId(1, 2)].references.append(ua.ReferenceDescription(BrowseName=ua.QualifiedName("own", 2)))
    for value in nodes.values():
        value.references.append(ua.ReferenceDescription(BrowseName=ua.QualifiedName("common", 2)))
    type_cache.write(path, KEY, nodes, {})
    with type_cache.read(path, KEY) as read:
        first, second = (read[node_id] for node_id in nodes)
        assert first.attributes[name].value is second.attributes[name].value
        assert first.attributes[name] is not second.attributes[name]
        assert [reference.BrowseName.Name for reference in first.references] == ["own", "common"]
        assert second.references == first.references[1:]
        assert second.references[0] is first.references[1]


def test_node_is_read_once_and_keeps_its_changes(path: Path) -> None:
    with type_cache.read(path, KEY) as nodes:
        assert len(nodes) == 0
        nodes[ua.NodeId(1, 2)].call = print
        assert nodes[ua.NodeId(1, 2)].call is print
        assert list(nodes) == [ua.NodeId(1, 2)]


def test_collector_does_not_visit_the_types_that_a_client_has_read(tmp_path: Path) -> None:
    """A client walked all types: each full collection then held the event loop for 60 ms."""
    count = 2100
    many = {ua.NodeId(number, 2): node(ua.NodeId(number, 2), "node") for number in range(1, count + 1)}
    type_cache.write(tmp_path / "many.cache", KEY, many, {})
    with type_cache.read(tmp_path / "many.cache", KEY) as nodes:
        read = {id(nodes[node_id]) for node_id in many}
        try:
            visited = sum(id(tracked) in read for tracked in gc.get_objects())
        finally:
            gc.unfreeze()
    assert visited == count % 500


def test_cache_supports_adding_and_deleting_nodes(path: Path) -> None:
    with type_cache.read(path, KEY) as nodes:
        nodes[ua.NodeId(9, 9)] = node(ua.NodeId(9, 9), "new")
        del nodes[ua.NodeId(1, 2)]
        assert ua.NodeId(9, 9) in nodes
        assert ua.NodeId(1, 2) not in nodes
        assert nodes.get(ua.NodeId(1, 2)) is None
        assert "no node id" not in nodes
        with pytest.raises(KeyError):
            del nodes[ua.NodeId(1, 2)]


def test_cache_file_of_another_version_is_refused(path: Path) -> None:
    with pytest.raises(UnusableCache, match="another version"):
        type_cache.read(path, bytes(32))


@pytest.mark.parametrize("kept", [0, 10, 70, 300])
def test_truncated_cache_file_is_refused(path: Path, kept: int) -> None:
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UnusableCache):
        type_cache.read(path, KEY)


@pytest.mark.parametrize("filling", [b"\x00", b"\xff", b"."], ids=["zeros", "ones", "text"])
def test_cache_file_with_damaged_nodes_and_index_is_refused(path: Path, filling: bytes) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:_HEADER] + filling * (len(content) - _HEADER))
    with pytest.raises(UnusableCache, match="damaged"):
        type_cache.read(path, KEY)


def test_cache_file_with_any_inverted_byte_is_refused(path: Path) -> None:
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        with pytest.raises(UnusableCache):
            type_cache.read(path, KEY)


def test_cache_file_that_grew_is_refused(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\x00")
    with pytest.raises(UnusableCache, match="damaged"):
        type_cache.read(path, KEY)


def test_cache_whose_declarations_other_code_has_written_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The declarations of a struct with another field ended the start with a TypeError."""

    class Older(Struct, frozen=True):
        browse_name: ua.QualifiedName

    Older.__qualname__, Older.__module__ = "Declaration", "edge.uaserver.declarations"
    older = cast("Declaration", Older(ua.QualifiedName("Pump", 2)))
    with monkeypatch.context() as earlier:
        earlier.setattr(module, "Declaration", Older)
        type_cache.write(path, KEY, NODES, {ua.NodeId(1, 2): older})
    with pytest.raises(UnusableCache, match="other code"):
        type_cache.read(path, KEY)


def test_missing_cache_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UnusableCache, match="No such file"):
        type_cache.read(tmp_path / "types.cache", KEY)


def test_cache_file_writable_by_others_is_refused(path: Path) -> None:
    path.chmod(0o666)
    with pytest.raises(UnusableCache, match="another user"):
        type_cache.read(path, KEY)
