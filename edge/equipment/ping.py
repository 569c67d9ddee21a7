"""Pings equipment over its own protocol and measures the response time."""

import pkgutil
from collections.abc import Sequence

from msgspec import Struct

from edge.config import EquipmentSettings, Settings
from edge.foundation.errors import Refused, SettingsError, Unavailable
from edge.links.connection_fault import fault_of
from edge.model.equipment_connection import ConnectionFault

_OF_ONE_CLIENT = frozenset(
    {ConnectionFault.DECLINED, ConnectionFault.REFUSED, ConnectionFault.CLOSED, ConnectionFault.SILENT}
)
"""How equipment that allows a single client receives a second one: it depends on the make."""


class PingResult(Struct, frozen=True):
    """The response and its time in seconds; `answers` is None when that is unknown, `fault` why there is none."""

    answers: bool | None
    detail: str
    seconds: float | None = None
    fault: ConnectionFault | None = None


def with_clients(result: PingResult, clients: Sequence[str]) -> PingResult:
    """Return a result as it is where gateways are connected to the equipment: it may allow a single client."""
    if not clients or result.answers is not False or result.fault not in _OF_ONE_CLIENT:
        return result
    detail = f"works: {', '.join(clients)} is its client, and it takes no second one ({result.detail})"
    return PingResult(answers=True, detail=detail)


async def ping(location: str, name: str, section: EquipmentSettings, settings: Settings) -> PingResult:
    """Ping equipment on a connection of its own; `location` is that of its kind (`EquipmentKind.ping`)."""
    if not location:
        return PingResult(None, f"equipment of kind {section.kind} can be reached by its gateway only")
    try:
        ping_result: PingResult = await pkgutil.resolve_name(location)(name, section, settings)
    except (Refused, SettingsError, Unavailable) as error:
        return PingResult(answers=False, detail=error.message, fault=fault_of(error))
    return ping_result
