"""With `durability = "replicated"` and no replica left after a failover, clients read why nothing is accepted."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from asyncua import Client, ua

from tests.free_ports import free_port
from tests.outside.servers import wait_for
from tests.sentinel.line import open_line
from tests.sentinel.network import Network
from tests.sentinel.plant import Station

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
_LEVEL = ua.NodeId(ua.ObjectIds.Server_ServiceLevel)


async def read_server(endpoint: str) -> tuple[int, str]:
    """Return the ServiceLevel and the status text."""
    async with Client(endpoint, timeout=5) as client:
        names = {(await node.read_browse_name()).Name: node for node in await client.nodes.objects.get_children()}
        children = {(await node.read_browse_name()).Name: node for node in await names["Gateway"].get_children()}
        status = children["Status"]
        return await client.get_node(_LEVEL).read_value(), str(await status.read_value())


def shows(endpoint: str, level: int, text: str) -> bool:
    """Return whether the server shows them now; it may not listen yet."""
    try:
        shown = asyncio.run(read_server(endpoint))
    except (OSError, TimeoutError, ConnectionError, ua.UaError):
        return False
    return shown[0] == level and text in shown[1]


def test_opcua_shows_why_nothing_is_accepted_without_a_replica(tmp_path: Path) -> None:
    """It refused connections: the gateway opened nothing before the replicas had confirmed its lease."""
    endpoint = f"opc.tcp://127.0.0.1:{free_port()}"
    with Network() as network, open_line(tmp_path / "line", network) as line:
        wait_for(line.settled, "the line works")
        primary, replica = line.nodes
        opcua = f'[opcua]\nendpoint = "{endpoint}"\nsecurity = "none"\nanonymous = "observer"\npki = "{tmp_path}"\n'
        settings = f'[mqtt]\nurl = ""\n[redis]\nurl = "{line.url}"\ndurability = "replicated"\n{opcua}'
        with contextlib.closing(Station(tmp_path / "gateway", settings, {})) as gateway:
            gateway.open()
            wait_for(lambda: shows(endpoint, 255, ""), "nothing is wrong", 60)
            primary.kill()
            wait_for(lambda: line.primary() is replica, "the replica is named", 30)
            reason = "its replicas do not confirm: 0 of 1 replicas have confirmed within 1000 ms"
            wait_for(lambda: shows(endpoint, 1, reason), "no data, and the reason", 30)
            assert reason in gateway.status
            primary.start()
            wait_for(lambda: shows(endpoint, 255, ""), "nothing is wrong any more", 60)
