"""Every official type has the attributes of its node set (OPC 10000-3, 5.8.3): compared by script, over the wire."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from asyncua import Client, ua

from edge.uaserver.namespaces import Namespace
from tests.uaserver.other_stack import OtherStack

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

FILES = {"ns0": 0, "di": Namespace.DI, "ia": Namespace.IA, "machinery": Namespace.MACHINERY}
KINDS = "DataType|ObjectType|VariableType|ReferenceType"
S = ua.StatusCodes


def declared(nodeset_package: Path) -> Iterator[tuple[str, ua.NodeId, str]]:
    """Yield kind, NodeId and text of each type in the files that the OPC Foundation publishes."""
    with ZipFile(nodeset_package) as archive:
        for file, index in FILES.items():
            xml = gzip.decompress(archive.read(f"o6_nodeset_compiler/bundle/{file}.xml.gz")).decode()
            for match in re.finditer(rf'<UA({KINDS}) NodeId="(?:ns=1;)?i=(\d+)".*?</UA\1>', xml, re.DOTALL):
                yield match[1], ua.NodeId(int(match[2]), int(index)), match[0]


async def attributes(client: Client, nodes: list[ua.NodeId], attribute: ua.AttributeIds) -> list[ua.DataValue]:
    found: list[ua.DataValue] = []
    for first in range(0, len(nodes), 100):
        asked = [ua.ReadValueId(node, attribute) for node in nodes[first : first + 100]]
        found += await client.uaclient.read(ua.ReadParameters(0, ua.TimestampsToReturn.Neither, asked))
    return found


async def test_types_are_abstract_as_in_their_node_sets(client: Client, nodeset_package: Path) -> None:
    """130 concrete types of namespace 0 were abstract: a client may not create an instance, or a subscription to it."""
    texts = {node: text.split(">", 1)[0] for _, node, text in declared(nodeset_package)}
    found = await attributes(client, list(texts), ua.AttributeIds.IsAbstract)
    there = [(text, value) for text, value in zip(texts.values(), found, strict=True) if value.StatusCode.is_good()]
    wrong = [text for text, value in there if value.Value.Value is not ('IsAbstract="true"' in text)]
    assert len(there) > 1000
    assert wrong == []


async def test_data_types_have_a_definition_or_none(client: Client, nodeset_package: Path) -> None:
    """498 of 530 were Good with null: a client took them for structures without fields."""
    texts = {node: text for kind, node, text in declared(nodeset_package) if kind == "DataType"}
    found = await attributes(client, list(texts), ua.AttributeIds.DataTypeDefinition)
    values = dict(zip(texts, found, strict=True))
    assert {value.StatusCode.value for value in values.values()} == {S.Good, S.BadAttributeIdInvalid}
    undefined = [node for node, value in values.items() if value.StatusCode.is_good() and value.Value.Value is None]
    assert undefined == []
    for node, text in texts.items():
        fields = re.findall(r'<Field Name="([^"]+)"', text)
        if fields:
            names = [field.Name for field in values[node].Value.Value.Fields]
            assert names[-len(fields) :] == fields, text
    # The fields of the base type come first (OPC 10000-3, 8.48).
    user_name = values[ua.NodeId(ua.ObjectIds.UserNameIdentityToken)].Value.Value
    assert [field.Name for field in user_name.Fields][:2] == ["PolicyId", "UserName"]


async def test_encoding_of_a_structure_is_that_in_binary(client: Client, nodeset_package: Path) -> None:
    """Three structures of DI named their encoding in XML: the importer takes the first one."""
    nodes = [node for kind, node, _ in declared(nodeset_package) if kind == "DataType"]
    found = await attributes(client, nodes, ua.AttributeIds.DataTypeDefinition)
    encodings = [
        value.Value.Value.DefaultEncodingId
        for value in found
        if value.StatusCode.is_good() and isinstance(value.Value.Value, ua.StructureDefinition)
    ]
    named = [encoding for encoding in encodings if not encoding.is_null()]
    names = await attributes(client, named, ua.AttributeIds.BrowseName)
    assert len(named) > 200
    assert {value.Value.Value.Name for value in names} == {"Default Binary"}


async def test_own_types_are_not_abstract(client: Client) -> None:
    types = await client.get_node(ua.ObjectIds.BaseObjectType).get_children(refs=ua.ObjectIds.HasSubtype)
    own = [node.nodeid for node in types if node.nodeid.NamespaceIndex == Namespace.TYPES]
    found = await attributes(client, own, ua.AttributeIds.IsAbstract)
    assert len(own) > 4
    assert [value.Value.Value for value in found] == [False] * len(own)


async def test_other_stack_reads_definitions(other: OtherStack) -> None:
    async def definition(node: str) -> dict[str, object]:
        (value,) = await other.read({"nodeId": {"$": "NodeId", "text": node}, "attributeId": 23})
        found: dict[str, object] = value
        return found

    assert (await definition("i=12"))["statusCode"] == "BadAttributeIdInvalid"
    assert (await definition("i=884"))["statusCode"] == "Good"
    assert (await definition("i=852"))["statusCode"] == "Good"
