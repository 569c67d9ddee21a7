"""Names in one line what the gateway serves."""

from typing import TYPE_CHECKING

from edge.app.opcua import OpcuaService
from edge.config import Settings

if TYPE_CHECKING:
    from edge.features.telemetry.service import TelemetryService


def summary_of(
    settings: Settings,
    opcua: OpcuaService | None,
    sidecars: str,
    measured: str,
    telemetry: "TelemetryService | None",
) -> str:
    """Return what is served: scopes, equipment and the addresses of the servers, empty ones without."""
    pieces = len(settings.southbound)
    parts = [f"scopes {', '.join(settings.gateway.scopes)}", f"{pieces} piece{'' if pieces == 1 else 's'} of equipment"]
    if opcua and opcua.server:
        parts.append(f"OPC UA {opcua.server.endpoint}")
    if sidecars:
        parts.append(f"MessagePack-RPC {sidecars}")
    if telemetry and (telemetry.own_rules or settings.source):
        parts.append(f"{telemetry.own_rules} rules, {len(settings.source)} sources of samples")
    if settings.sparkplug.group:
        parts.append(f"Sparkplug group {settings.sparkplug.group}")
    if measured:
        parts.append(f"metrics {measured}")
    return "; ".join(parts)
