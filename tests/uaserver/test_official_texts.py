"""The official nodes have a description; that of a node set stays."""

from asyncua import Server, ua

from edge.uaserver.official_texts import describe_official, official_text


async def test_official_node_without_a_description_gets_one() -> None:
    server = Server()
    await server.init()
    aspace = server.iserver.aspace
    own = ua.DataValue(ua.Variant(ua.LocalizedText("as the node set has it"), ua.VariantType.LocalizedText))
    level = server.get_node(ua.ObjectIds.Server_ServiceLevel)
    await aspace.write_attribute_value(level.nodeid, ua.AttributeIds.Description, own)
    describe_official(aspace)
    assert (await level.read_description()).Text == "as the node set has it"
    status = server.get_node(ua.ObjectIds.Server_ServerStatus)
    assert (await status.read_description()).Text == official_text("ServerStatus") != ""


def test_metadata_is_described_by_its_uri() -> None:
    assert official_text("http://opcfoundation.org/UA/DI/") == "Metadata of a namespace."
    assert official_text("none") == ""
