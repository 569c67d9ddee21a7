"""The cache file of type nodes: it returns the written nodes, and an unsuitable file is refused."""

from pathlib import Path

import pytest
from asyncua import ua
from asyncua.server.address_space import AttributeValue, NodeData

from edge.uaserver import type_cache
from edge.uaserver.type_cache import UnusableCache

KEY = bytes(range(32))


def node(node_id: ua.NodeId, name: str) -> NodeData:
    data = NodeData(node_id)
    data.attributes[ua.AttributeIds.DisplayName] = AttributeValue(ua.DataValue(ua.Variant(ua.LocalizedText(name))))
    return data


def name_of(data: NodeData) -> str:
    return str(data.attributes[ua.AttributeIds.DisplayName].value.Value.Value.Text)


NODES = {node_id: node(node_id, f"node {node_id}") for node_id in (ua.NodeId(1, 2), ua.NodeId(1, 3), ua.NodeId("a", 2))}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "types.cache"
    type_cache.write(path, KEY, NODES)
    return path


def test_every_node_comes_back(path: Path) -> None:
    with type_cache.read(path, KEY) as nodes:
        assert {node_id: name_of(nodes[node_id]) for node_id in NODES} == {
            node_id: name_of(data) for node_id, data in NODES.items()
        }


def test_a_node_is_read_once_and_stays_as_it_was_changed(path: Path) -> None:
    with type_cache.read(path, KEY) as nodes:
        assert len(nodes) == 0
        nodes[ua.NodeId(1, 2)].call = print
        assert nodes[ua.NodeId(1, 2)].call is print
        assert list(nodes) == [ua.NodeId(1, 2)]


def test_nodes_are_added_and_deleted_as_in_a_dictionary(path: Path) -> None:
    with type_cache.read(path, KEY) as nodes:
        nodes[ua.NodeId(9, 9)] = node(ua.NodeId(9, 9), "new")
        del nodes[ua.NodeId(1, 2)]
        assert ua.NodeId(9, 9) in nodes
        assert ua.NodeId(1, 2) not in nodes
        assert nodes.get(ua.NodeId(1, 2)) is None
        assert "no node id" not in nodes
        with pytest.raises(KeyError):
            del nodes[ua.NodeId(1, 2)]


def test_a_file_made_for_something_else_is_not_opened(path: Path) -> None:
    with pytest.raises(UnusableCache, match="another version"):
        type_cache.read(path, bytes(32))


@pytest.mark.parametrize("kept", [0, 10, 70, 300])
def test_a_truncated_file_is_not_opened(path: Path, kept: int) -> None:
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UnusableCache):
        type_cache.read(path, KEY)


def test_a_missing_file_reports_it(tmp_path: Path) -> None:
    with pytest.raises(UnusableCache, match="No such file"):
        type_cache.read(tmp_path / "types.cache", KEY)


def test_a_file_that_others_may_write_is_not_opened(path: Path) -> None:
    path.chmod(0o666)
    with pytest.raises(UnusableCache, match="somebody else"):
        type_cache.read(path, KEY)
