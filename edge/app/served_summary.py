"""Names in one line what the gateway serves."""

from edge.app.opcua import OpcuaService
from edge.app.parts import GatewayParts


def summary_of(core: GatewayParts, opcua: OpcuaService | None, sidecars: str, measured: str) -> str:
    """Return what is served: scopes, equipment and the addresses of the servers, empty ones without."""
    settings = core.settings
    pieces = len(settings.southbound)
    parts = [f"scopes {', '.join(settings.gateway.scopes)}", f"{pieces} piece{'' if pieces == 1 else 's'} of equipment"]
    if opcua and opcua.server:
        parts.append(f"OPC UA {opcua.server.endpoint}")
    if sidecars:
        parts.append(f"MessagePack-RPC {sidecars}")
    parts += [text for opened in core.opened for serving in opened.serving if (text := serving())]
    if measured:
        parts.append(f"metrics {measured}")
    return "; ".join(parts)
