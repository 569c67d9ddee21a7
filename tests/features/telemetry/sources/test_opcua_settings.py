"""The settings of a source over OPC UA."""

import msgspec
import pytest

from edge.config import Settings
from edge.features.telemetry.sources.opcua import OpcuaSourceSettings, node_list

SETTINGS = {"kind": "opcua", "url": "opc.tcp://h", "security": "none"}


@pytest.mark.parametrize("node", ["nonsense", "oven.temp nsu=a;s=b", "oven.temp =", "a = ns=x;s=y", "= /Oven"])
def test_invalid_node_is_a_fault(node: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(SETTINGS | {"nodes": [node]}, OpcuaSourceSettings)


def test_nodes_are_split_into_tag_and_node() -> None:
    nodes = ("a.b = nsu=urn:x=y;s=z=1", "c=/A/B", "d = i=2258")
    settings = msgspec.convert(SETTINGS | {"nodes": nodes}, OpcuaSourceSettings)
    assert node_list(settings.nodes) == [("a.b", "nsu=urn:x=y;s=z=1"), ("c", "/A/B"), ("d", "i=2258")]
    assert list(settings.conflicts(Settings())) == []


def test_conflict_of_a_source_names_its_key() -> None:
    twice = msgspec.convert(SETTINGS | {"nodes": ["a = i=1", "a = i=2"]}, OpcuaSourceSettings)
    assert list(map(str, twice.conflicts(Settings()))) == ["nodes: the tag a occurs twice"]
    encrypted = msgspec.structs.replace(twice, security="encrypted", nodes=("a = i=1",))
    assert [str(conflict).partition(":")[0] for conflict in encrypted.conflicts(Settings())] == [
        "cert_file",
        "key_file",
        "trusted",
    ]
