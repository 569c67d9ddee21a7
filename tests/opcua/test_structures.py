"""Structures of a server whose types are read at run time."""

import struct
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from asyncua import Client, Node, Server, ua
from asyncua.common.structures104 import new_enum, new_struct, new_struct_field
from asyncua.ua.ua_binary import Primitives, variant_to_binary

from edge.foundation.errors import Refused
from edge.opcua.binary import MAX_DEPTH
from edge.opcua.structures import Structures
from tests.opcua_client import patient_client

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Vendor:
    """A server with types of its own."""

    def __init__(self, server: Server, client: Client, index: int) -> None:
        self.server = server
        self.client = client
        self.index = index

    async def type(self, fields: Sequence[ua.StructureField], **how: Any) -> tuple[Node, ua.NodeId]:
        """Define a structure; return its data type and its encoding."""
        name = f"T{uuid.uuid4().hex}"
        data_type, (encoding, *_) = await new_struct(self.server, self.index, name, list(fields), **how)
        return data_type, encoding.nodeid

    async def read(self, encoding: ua.NodeId, body: bytes) -> Any:
        return await Structures(self.client).plain(ua.ExtensionObject(TypeId=encoding, Body=body))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vendor() -> AsyncIterator[Vendor]:
    server = Server()
    await server.init()
    server.set_endpoint("opc.tcp://127.0.0.1:0")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    index = await server.register_namespace("urn:vendor")
    async with server:
        client = patient_client(f"opc.tcp://127.0.0.1:{server.bserver.port}")
        client.session_timeout = 60_000
        async with client:
            yield Vendor(server, client, index)


def text(value: str) -> bytes:
    packed: bytes = Primitives.String.pack(value)
    return packed


async def test_fields_are_decoded_in_order(vendor: Vendor) -> None:
    _, encoding = await vendor.type(
        [
            new_struct_field("Torque", ua.VariantType.Double),
            new_struct_field("Tool", ua.VariantType.String),
            new_struct_field("Counts", ua.VariantType.Int32, array=True),
        ]
    )
    body = struct.pack("<d", 85.2) + text("wrench") + struct.pack("<iii", 2, 7, 8)
    assert await vendor.read(encoding, body) == {"Torque": 85.2, "Tool": "wrench", "Counts": [7, 8]}


async def test_structure_is_read_where_server_defines_base_structure(vendor: Vendor) -> None:
    """node-opcua defines i=22 without fields; the search for base types must end there."""
    base = vendor.server.get_node(ua.NodeId(ua.ObjectIds.Structure))
    empty = ua.DataValue(ua.Variant(ua.StructureDefinition(), ua.VariantType.ExtensionObject))
    await base.write_attribute(ua.AttributeIds.DataTypeDefinition, empty)
    _, encoding = await vendor.type([new_struct_field("Torque", ua.VariantType.Double)])
    assert await vendor.read(encoding, struct.pack("<d", 85.2)) == {"Torque": 85.2}


async def test_optional_fields_are_present_as_in_the_mask(vendor: Vendor) -> None:
    _, encoding = await vendor.type(
        [
            new_struct_field("Id", ua.VariantType.String),
            new_struct_field("Low", ua.VariantType.Double, optional=True),
            new_struct_field("High", ua.VariantType.Double, optional=True),
        ]
    )
    assert await vendor.read(encoding, struct.pack("<I", 2) + text("a") + struct.pack("<d", 9.5)) == {
        "Id": "a",
        "High": 9.5,
    }


async def test_nested_structures_and_enumerations_are_decoded(vendor: Vendor) -> None:
    colour = await new_enum(vendor.server, vendor.index, "Colour", ["RED", "GREEN"])
    inner, _ = await vendor.type([new_struct_field("Colour", colour)])
    _, encoding = await vendor.type([new_struct_field("Lamps", inner, array=True), new_struct_field("Main", inner)])
    assert await vendor.read(encoding, struct.pack("<iiii", 2, 0, 1, 1)) == {
        "Lamps": [{"Colour": 0}, {"Colour": 1}],
        "Main": {"Colour": 1},
    }


async def test_null_array_is_decoded_as_empty(vendor: Vendor) -> None:
    _, encoding = await vendor.type([new_struct_field("Counts", ua.VariantType.Int32, array=True)])
    assert await vendor.read(encoding, struct.pack("<i", -1)) == {"Counts": []}


async def test_a_variant_may_hold_another_structure(vendor: Vendor) -> None:
    _, inner = await vendor.type([new_struct_field("Angle", ua.VariantType.Double)])
    _, encoding = await vendor.type([new_struct_field("Content", ua.VariantType.Variant)])
    held = ua.Variant([ua.ExtensionObject(TypeId=inner, Body=struct.pack("<d", 41.5))], ua.VariantType.ExtensionObject)
    assert await vendor.read(encoding, variant_to_binary(held)) == {"Content": [{"Angle": 41.5}]}


async def test_truncated_structure_is_refused(vendor: Vendor) -> None:
    _, encoding = await vendor.type([new_struct_field("Torque", ua.VariantType.Double)])
    with pytest.raises(Refused, match="not as defined"):
        await vendor.read(encoding, b"\0\0")


async def test_array_truncated_within_a_number_is_refused(vendor: Vendor) -> None:
    _, encoding = await vendor.type([new_struct_field("Angles", ua.VariantType.Double, array=True)])
    with pytest.raises(Refused, match="is not as defined"):
        await vendor.read(encoding, Primitives.Int32.pack(2) + Primitives.Double.pack(1.5) + b"?")


async def test_an_unknown_encoding_is_refused(vendor: Vendor) -> None:
    with pytest.raises(Refused, match="does not say what ns=99;i=1 encodes"):
        await vendor.read(ua.NodeId(1, 99), b"\0")


async def test_a_type_that_cannot_be_read_is_refused_every_time(vendor: Vendor) -> None:
    fields = [new_struct_field("A", ua.VariantType.Double), new_struct_field("B", ua.VariantType.Double)]
    fields[1].ValueRank = 2
    _, encoding = await vendor.type(fields)
    structures = Structures(vendor.client)
    value = ua.ExtensionObject(TypeId=encoding, Body=b"\0" * 32)
    for _ in range(2):
        with pytest.raises(Refused, match="more than one dimension"):
            await structures.plain(value)


async def test_a_union_is_refused(vendor: Vendor) -> None:
    _, encoding = await vendor.type([new_struct_field("A", ua.VariantType.Double)], is_union=True)
    with pytest.raises(Refused, match="is a Union"):
        await vendor.read(encoding, b"\0" * 12)


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
GUID = uuid.UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (42.5, 42.5),
        (b"\0", b"\0"),
        ((1, [2]), [1, [2]]),
        (ua.LocalizedText("Rear axle", "en"), "Rear axle"),
        (ua.LocalizedText(), ""),
        ("N\u00b7m \udcff", "N\u00b7m \\xff"),
        (ua.LocalizedText("\udcff"), "\\xff"),
        (ua.QualifiedName("\udcff"), "\\xff"),
        (ua.QualifiedName("Torque", 3), "Torque"),
        (ua.NodeId(5, 2), "ns=2;i=5"),
        (ua.StatusCode(ua.StatusCodes.BadTimeout), "BadTimeout"),
        (ua.ServerState.Running, 0),
        (NOON.replace(tzinfo=None), NOON),
        (GUID, str(GUID)),
        (ua.DataValue(ua.Variant([True])), [True]),
        (ua.ExtensionObject(), None),
        (ua.Range(Low=1.0, High=2.0), {"Low": 1.0, "High": 2.0}),
    ],
)
async def test_opc_ua_values_become_plain_python_values(vendor: Vendor, value: object, plain: object) -> None:
    assert await Structures(vendor.client).plain(value) == plain


async def written(vendor: Vendor, data_type: Node, value: Any) -> Any:
    """Encode a structure; return it as decoded from the encoded value."""
    structures = Structures(vendor.client)
    return await structures.plain(await structures.variant(data_type.nodeid, value))


async def test_written_structure_is_unchanged_after_reading(vendor: Vendor) -> None:
    inner, _ = await vendor.type([new_struct_field("Torque", ua.VariantType.Double)])
    outer, _ = await vendor.type(
        [
            new_struct_field("Name", ua.VariantType.String),
            new_struct_field("Note", ua.VariantType.LocalizedText, optional=True),
            new_struct_field("Low", ua.VariantType.Double, optional=True),
            new_struct_field("Steps", inner, array=True),
            new_struct_field("At", ua.VariantType.DateTime),
            new_struct_field("Node", ua.VariantType.NodeId),
            new_struct_field("Any", ua.VariantType.Variant),
        ]
    )
    value = {
        "Name": "a",
        "Low": 9.5,
        "Steps": [{"Torque": 1.5}, {"Torque": 2.5}],
        "At": NOON,
        "Node": "ns=2;i=5",
        "Any": 7,
    }
    assert await written(vendor, outer, value) == value


async def test_missing_field_gets_the_default_of_its_type(vendor: Vendor) -> None:
    data_type, _ = await vendor.type(
        [
            new_struct_field("Count", ua.VariantType.Int32),
            new_struct_field("Name", ua.VariantType.String),
            new_struct_field("Steps", ua.VariantType.Double, array=True),
            new_struct_field("High", ua.VariantType.Double, optional=True),
        ]
    )
    assert await written(vendor, data_type, None) == {"Count": 0, "Name": None, "Steps": []}


async def test_an_array_of_structures_is_one_argument(vendor: Vendor) -> None:
    data_type, _ = await vendor.type([new_struct_field("Id", ua.VariantType.String)])
    structures = Structures(vendor.client)
    variant = await structures.variant(data_type.nodeid, [{"Id": "a"}, {"Id": "b"}], is_array=True)
    assert variant.is_array
    assert await structures.plain(variant) == [{"Id": "a"}, {"Id": "b"}]
    empty = await structures.variant(data_type.nodeid, None, is_array=True)
    assert (empty.Value, empty.VariantType) == ([], ua.VariantType.ExtensionObject)


async def test_field_that_allows_subtypes_is_encoded_with_its_type(vendor: Vendor) -> None:
    base, _ = await vendor.type([new_struct_field("Id", ua.VariantType.String)])
    derived, _ = await vendor.type(
        [new_struct_field("Id", ua.VariantType.String), new_struct_field("Torque", ua.VariantType.Double)]
    )
    holder, _ = await vendor.type([new_struct_field("Meta", base)])
    definition = await vendor.server.get_node(holder.nodeid).read_data_type_definition()
    # asyncua cannot create such a type: the flag IsOptional has another meaning in it (OPC 10000-3, 8.48).
    definition.StructureType = ua.StructureType.StructureWithSubtypedValues
    definition.Fields[0].IsOptional = True
    await vendor.server.get_node(holder.nodeid).write_data_type_definition(definition)
    meta = await Structures(vendor.client).variant(derived.nodeid, {"Id": "a", "Torque": 1.5})
    assert await written(vendor, holder, {"Meta": meta}) == {"Meta": {"Id": "a", "Torque": 1.5}}
    assert await written(vendor, holder, {"Meta": {"Id": "b"}}) == {"Meta": {"Id": "b"}}


@pytest.mark.parametrize("names", [["Torque"], ["Id", "Note", "Torque"]])
async def test_derived_structure_has_the_fields_of_its_base_repeated_or_not(vendor: Vendor, names: list[str]) -> None:
    fields = {
        "Id": new_struct_field("Id", ua.VariantType.String),
        "Note": new_struct_field("Note", ua.VariantType.String, optional=True),
        "Torque": new_struct_field("Torque", ua.VariantType.Double, optional=True),
    }
    base, _ = await vendor.type([fields["Id"], fields["Note"]])
    derived, _ = await vendor.type([fields[name] for name in names])
    structure = vendor.server.nodes.base_structure_type
    await structure.delete_reference(derived, ua.ObjectIds.HasSubtype)
    await base.add_reference(derived, ua.ObjectIds.HasSubtype)
    whole = {"Id": "a", "Note": "b", "Torque": 1.5}
    assert await written(vendor, derived, whole) == whole
    assert await written(vendor, derived, {"Id": "a", "Torque": 1.5}) == {"Id": "a", "Torque": 1.5}


@pytest.mark.parametrize("value", [{"Nonsense": 1}, {"Count": "many"}, 5])
async def test_value_that_does_not_match_the_type_is_refused(vendor: Vendor, value: object) -> None:
    data_type, _ = await vendor.type([new_struct_field("Count", ua.VariantType.Int32)])
    with pytest.raises(Refused) as caught:
        await Structures(vendor.client).variant(data_type.nodeid, value)
    assert caught.value.kind == "unwritable"


@pytest.mark.parametrize(
    ("kind", "value", "wire"),
    [
        (ua.ObjectIds.Boolean, True, ua.Variant(True, ua.VariantType.Boolean)),
        (ua.ObjectIds.UInt16, 7, ua.Variant(7, ua.VariantType.UInt16)),
        (
            ua.ObjectIds.UtcTime,
            NOON,
            ua.Variant(NOON, ua.VariantType.DateTime),
        ),
        (ua.ObjectIds.LocalizedText, "Hi", ua.Variant(ua.LocalizedText("Hi"), ua.VariantType.LocalizedText)),
        (ua.ObjectIds.BaseDataType, 1.5, ua.Variant(1.5, ua.VariantType.Double)),
        (ua.ObjectIds.Guid, str(GUID), ua.Variant(GUID, ua.VariantType.Guid)),
    ],
)
async def test_simple_value_is_encoded_with_the_requested_type(
    vendor: Vendor, kind: int, value: object, wire: ua.Variant
) -> None:
    assert await Structures(vendor.client).variant(ua.NodeId(kind), value) == wire


async def test_huge_array_of_empty_structures_is_refused(vendor: Vendor) -> None:
    empty, _ = await vendor.type([])
    _, encoding = await vendor.type([new_struct_field("All", empty.nodeid, array=True)])
    with pytest.raises(Refused, match="2147483647 elements announced in 0 bytes"):
        await vendor.read(encoding, struct.pack("<i", 2**31 - 1))


async def test_exponentially_nested_structures_are_refused(vendor: Vendor) -> None:
    data_type, encoding = await vendor.type([])
    for _ in range(30):
        twice = [new_struct_field(name, data_type.nodeid) for name in ("Left", "Right")]
        data_type, encoding = await vendor.type(twice)
    with pytest.raises(Refused, match="contains more structures than bytes"):
        await vendor.read(encoding, b"")


async def test_structure_that_contains_itself_is_refused(vendor: Vendor) -> None:
    own = ua.NodeId(ua.ObjectIds.Structure)
    data_type, encoding = await vendor.type([new_struct_field("Next", own, optional=True)])
    node = data_type
    definition = await node.read_data_type_definition()
    definition.Fields[0].DataType = data_type.nodeid
    await node.write_data_type_definition(definition)
    with pytest.raises(Refused, match="levels deep"):
        await vendor.read(encoding, struct.pack("<I", 1) * 10_000)


async def test_type_of_the_base_namespace_with_a_name_as_identifier_is_refused(vendor: Vendor) -> None:
    odd = ua.NodeId("Double", 0)
    _, encoding = await vendor.type([new_struct_field("Torque", odd)])
    for asking in (vendor.read(encoding, bytes(8)), Structures(vendor.client).variant(odd, 1.5)):
        with pytest.raises(Refused, match="does not say what s=Double is derived from") as caught:
            await asking
        assert caught.value.kind == "unreadable"


async def test_data_types_that_are_derived_from_each_other_are_refused(vendor: Vendor) -> None:
    base = vendor.server.get_node(ua.ObjectIds.BaseDataType)
    one = await base.add_data_type(vendor.index, "CircleOne")
    two = await one.add_data_type(vendor.index, "CircleTwo")
    back = ua.ReferenceDescription(
        ReferenceTypeId=ua.NodeId(ua.ObjectIds.HasSubtype), NodeId=two.nodeid, IsForward=False
    )
    vendor.server.iserver.aspace[one.nodeid].references = [back]
    with pytest.raises(Refused, match="there is no end"):
        await Structures(vendor.client).variant(one.nodeid, 1)


async def test_value_nested_beyond_the_limit_is_refused(vendor: Vendor) -> None:
    value: Any = 1
    for _ in range(2 * MAX_DEPTH):
        value = [value]
    with pytest.raises(Refused, match="nested too deep"):
        await Structures(vendor.server).plain(value)
