"""Adds to the OPC UA server: push of certificates, the other servers of the store, reverse connect, registration."""

from functools import partial

from edge.app.features import discovery_capabilities
from edge.app.parts import GatewayParts
from edge.features.opcua_extras import registration
from edge.features.opcua_extras.push import add_push
from edge.features.opcua_extras.redundant_servers import RedundantServers, SharedServer, SharedServers
from edge.features.opcua_extras.registration import reachable_url
from edge.features.opcua_extras.reverse_connect import dial, reverse_hello, wait_at_clients
from edge.uaserver.parts import NewServer, ServerPart
from edge.uaserver.server import UaServer


async def add_extras(core: GatewayParts, new: NewServer) -> ServerPart:
    """Add what the settings switch on; the servers of the store are named to each other in any case."""
    settings = core.settings.opcua
    if settings.security_admins:
        add_push(new)
    redundant = RedundantServers(new.core, new.uri)

    async def share(server: UaServer) -> None:
        own = SharedServer(new.uri, reachable_url(server.endpoint))
        await SharedServers(core.store, core.settings.gateway.name, own, redundant.show).run()

    works = {"OPC UA servers": share}
    if settings.reverse_connect:
        works["OPC UA reverse connect"] = partial(_wait_at_clients, settings.reverse_connect, new.uri)
    if settings.discovery_server:
        works["OPC UA registration"] = partial(_keep_registered, core)
    return ServerPart(works=works)


async def _wait_at_clients(clients: tuple[str, ...], uri: str, server: UaServer) -> None:
    greeting = reverse_hello(uri, reachable_url(server.endpoint))
    await wait_at_clients(partial(dial, server.listener, greeting), clients)


async def _keep_registered(core: GatewayParts, server: UaServer) -> None:
    capabilities = discovery_capabilities(core.settings)
    application = registration.application_of(core.settings.gateway.name, server.endpoint, capabilities)
    await registration.keep_registered(registration.register_at(core.settings.opcua, application))
