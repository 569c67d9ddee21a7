"""The tool of a simulated joining controller shows whether it is enabled."""

import pytest
from asyncua import Client, ua

from edge.features.joining.lock import find_enabled
from edge.features.joining.simulated.asset import TOOL_URI
from edge.features.joining.simulated.controller import open_ijt
from edge.links.opcua import TypeName, open_client

pytestmark = pytest.mark.slow

SYSTEM = TypeName("http://opcfoundation.org/UA/IJT/Base/", 1005)


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_client_reads_whether_the_tool_is_enabled(*, enabled: bool) -> None:
    async with open_ijt(delay=None) as controller, open_client(controller.device.url) as session:
        controller.enabled = enabled
        (system,) = await session.instances(SYSTEM)
        node = await find_enabled(session, system, "")
        assert node is not None
        assert await session.read(node) is enabled
        assert await find_enabled(session, system, TOOL_URI) == node
        assert await find_enabled(session, system, "urn:maker:other-tool") is None


@pytest.mark.parametrize(("folder", "name"), [("Controllers", "Controller"), ("Tools", "Spindle")])
async def test_asset_has_its_identification_and_implements_its_type(folder: str, name: str) -> None:
    """The assets were missing, but for the variable Enabled."""
    async with open_ijt(delay=None) as controller, Client(controller.device.url) as client:
        asset = client.get_node(ua.NodeId(f"Asset/{name}", controller.device.index))
        assert (await (await asset.get_parent()).read_browse_name()).Name == folder
        (interface,) = await asset.get_referenced_nodes(ua.ObjectIds.HasInterface)
        assert (await interface.read_browse_name()).Name in {"IControllerType", "IToolType"}
        parts = {(await child.read_browse_name()).Name: child for child in await asset.get_children()}
        assert parts.keys() == {"Identification", "MachineryBuildingBlocks", "Parameters"}
        members = {
            (await child.read_browse_name()).Name: child for child in await parts["Identification"].get_children()
        }
        values = {member: await node.read_value() for member, node in members.items()}
        assert values["ProductInstanceUri"].startswith("urn:microdcs-edge:sim:")
        assert {"Manufacturer", "SerialNumber", "Model", "SoftwareRevision"} <= values.keys()
        assert all(value is not None for value in values.values())
