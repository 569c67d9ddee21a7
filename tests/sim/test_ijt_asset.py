"""The tool of a simulated joining controller shows whether it is enabled."""

import pytest

from edge.links.opcua import TypeName, open_client
from edge.sim.ijt import open_ijt
from edge.southbound.ijt_lock import find_enabled

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
        assert await find_enabled(session, system, "urn:maker:other-tool") is None
