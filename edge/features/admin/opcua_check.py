"""Examines the port of the OPC UA server of the gateway."""

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from edge.app.installation import gateway_advice
from edge.app.opcua_hello import ANSWERS, PORT, send_hello
from edge.config import OpcuaSettings
from edge.model.finding import HealthFinding, failing, ok, warning

_ANYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - these are replaced


async def examine_port(settings: OpcuaSettings) -> AsyncIterator[HealthFinding]:
    """Send a Hello message to the endpoint of the gateway (OPC 10000-6, 7.1.2)."""
    endpoint = settings.endpoint
    if not endpoint:
        yield ok("OPC UA port", "switched off")
        return
    parts = urlsplit(endpoint)
    host = parts.hostname or "127.0.0.1"
    host = "127.0.0.1" if host in _ANYWHERE else host
    if not await _is_local(host):
        advice = "Check the network of this machine (`ip address`), or set [opcua] endpoint. The gateway waits for it."
        yield failing("OPC UA port", f"no interface of this machine has the address of {endpoint}", advice)
        return
    try:
        answer = await send_hello(host, parts.port or PORT, endpoint)
    except ConnectionRefusedError:
        advice = f"A gateway that runs opens it as soon as it has its store. If none runs: {gateway_advice()}"
        yield warning("OPC UA port", f"connection refused at {endpoint}: no gateway serves there", advice)
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        advice = (
            f"Check which program listens (`ss -ltnp sport = :{parts.port or PORT}`). "
            "If it is the gateway, check its log: journalctl -u microdcs-edge"
        )
        yield failing("OPC UA port", f"no answer at {endpoint}: {str(error) or 'too slow'}", advice)
    else:
        if answer in ANSWERS:
            yield ok("OPC UA port", f"answers at {endpoint}")
        else:
            advice = f"Stop the other program (`ss -ltnp sport = :{parts.port or PORT}`), or set [opcua] endpoint."
            yield failing("OPC UA port", f"the program at {endpoint} is not an OPC UA server", advice)


async def _is_local(host: str) -> bool:
    """Return whether a server on this machine can listen at an address, which may come later (DHCP)."""
    try:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, 0, start_serving=False)
    except OSError:
        return False
    server.close()
    return True
